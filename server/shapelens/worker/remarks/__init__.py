"""Operations that run, but hardly do what their author meant: which calls are asked about, and what is odd in them."""
