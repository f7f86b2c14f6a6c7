import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from entourage.refiner import ContextRefiner, PaperRefiner
from entourage.baselines import *
@parametrize_with_checks([ContextRefiner(), PaperRefiner(n_neighbors=2,n_blocks=1,epochs=1), Raw(), PCAWhitening(), WithinClassWhitening(), LDA(), QueryExpansion(), QuerySideExpansion(), KReciprocal(), Diffusion(), LinearHead(epochs=1), SelfAttention(n_blocks=1,epochs=1), Chain(PCAWhitening(), QueryExpansion()), Chain(WithinClassWhitening(), KReciprocal())])
def test_c(estimator, check):
    check(estimator)
