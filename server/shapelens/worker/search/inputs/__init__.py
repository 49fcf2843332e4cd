"""Inputs of models: what a model takes (`model_inputs`), the first choices (`starts`), and a search on from what failed (`input_search`).

A guess hides nothing:
- A sequence is as long as no size of the model or of its heads, and a convolution gets a batch.
- Pictures are square unless the code says otherwise (`square_pictures`), and no side is below four pixels.
- Channels, sides and features are those that the constructor or the settings say (`InputSaid`).
- A dim that the text names, or that is large, is not taken for 1, and no product sums over one number.
- Nothing is solved for where dims want to be permuted or added, as sizes that layers say tell (`Mismatch.lacks_transpose`).
What fails for all that stays `Mismatch.guessed`, in an example that is `ExampleRun.doubtful`.
"""
