"""torchvision's ResNet in small, written anew: the same parts under the same names, with random weights."""

from torch import nn
from torch.nn import functional as F

from entourage.runtime.randomness import seeded_weights

DEPTHS = (2, 1, 1, 1)


class Layer(nn.Module):
    """A residual layer as torchvision has it: of a bottleneck the 3 x 3 convolution has the stride."""

    def __init__(self, n_in, width, n_out, stride, bottleneck):
        super().__init__()
        sizes = [(n_in, width, 1), (width, width, 3), (width, n_out, 1)] if bottleneck else []
        sizes = sizes or [(n_in, width, 3), (width, n_out, 3)]
        self.strided = 2 if bottleneck else 1
        for number, (a, b, kernel) in enumerate(sizes, 1):
            step = stride if number == self.strided else 1
            self.add_module(f"conv{number}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            self.add_module(f"bn{number}", nn.BatchNorm2d(b))
        self.count = len(sizes)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        out = x
        for number in range(1, self.count + 1):
            out = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(out))
            out = F.relu(out) if number < self.count else out
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class Net(nn.Module):
    """ResNet in small, its parts named as torchvision names them."""

    def __init__(self, bottleneck=True):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        n_in = 8
        for stage, depth in enumerate(DEPTHS, 1):
            n_out, layers = 8 * stage * (4 if bottleneck else 1), []
            for number in range(depth):
                stride = 2 if stage > 1 and number == 0 else 1
                layers.append(Layer(n_in, 8 * stage, n_out, stride, bottleneck))
                n_in = n_out
            self.add_module(f"layer{stage}", nn.Sequential(*layers))
        self.fc = nn.Linear(n_in, 10)
        for norm in [module for module in self.modules() if isinstance(module, nn.BatchNorm2d)]:
            for values in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
                values.data.uniform_(0.5, 1.5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


def net(bottleneck=True) -> Net:
    return seeded_weights(0, lambda: Net(bottleneck)).eval()
