"""Ways to build a class: values for its parameters by annotations, by what the code does with them, and by their names; the likeliest
first.
"""
