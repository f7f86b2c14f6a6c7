"""Cross-image attention: an encoder trained by embeddings conditional on the image they are compared with."""
