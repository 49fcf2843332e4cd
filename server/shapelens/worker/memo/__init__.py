"""Takes over what an edit left alone, modules and calls of the evaluation before, so that what is wrong after an edit is said at once.

It must not know of processes. What it says is always followed by a run that takes over nothing.

Milliseconds of processor time until a run says what is wrong, for an edit of `__init__` / `forward`, with one way left out at a time
(median of 5; of 3 for the last row). A way that pays less than 5 ms everywhere should go.

    edit                                 all          no findings  no first     no memo      no submodule  no copies of
                                                      first        mismatch                  swap          repeated blocks
    recipe                               5.4 / 4.9    7.2 / 10.0   7.0 / 9.5    5.5 / 5.3    5.3 / 4.7     5.3 / 5.0
    ResNet-50, its network / a unit      16.6 / 10.8  222 / 281    17.1 / 31.5  56.5 / 49.2  18.8 / 11.4   17.6 / 10.8
    ViT, a block                         12.5 / 8.8   48.7 / 56.6  17.9 / 14.5  18.1 / 21.2  15.8 / 9.0    16.0 / 9.8
    Swin-T, a block                      40.2 / 27.1  182 / 161    93.5 / 55.2  92.7 / 85.8  52.8 / 27.8   49.2 / 26.0
    timm's vision transformer, a block   32.0 / 24.6  107 / 87.9   47.1 / 34.8  48.1 / 53.1  42.2 / 25.0   45.9 / 28.2
"""
