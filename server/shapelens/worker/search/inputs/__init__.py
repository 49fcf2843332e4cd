"""Inputs of models: forms of its arguments, and which to try after an attempt failed.

A guess hides nothing:
- A sequence is as long as no size of the model or of its heads, and a convolution gets a batch.
- Pictures are square unless the code says otherwise (`square_pictures`), and no side is below four pixels.
- Channels and sides are those that the constructor says (`InputSaid`).
- Nothing is solved for where dims want to be permuted or added, as sizes that layers say tell (`Mismatch.lacks_transpose`).
What fails for all that stays `Mismatch.guessed`, in an example that is `ExampleRun.doubtful`.
"""
