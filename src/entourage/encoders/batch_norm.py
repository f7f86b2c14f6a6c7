"""The batch norms of a network, which fine-tuning often leaves as they were pretrained."""

from torch import nn

__all__ = ["batch_norms"]


def batch_norms(module: nn.Module) -> list[nn.Module]:
    """The batch norms of a module, of any number of dimensions.

    Parameters
    ----------
    module : torch.nn.Module
        An encoder, for instance.

    Returns
    -------
    list of torch.nn.Module
        In the order of the module's parts.
    """
    return [part for part in module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
