import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 5)
        self.fc = nn.Linear(16 * 5 * 5, 10)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


scores = Net()(torch.randn(8, 3, 32, 32))
