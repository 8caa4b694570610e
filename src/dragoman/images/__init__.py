"""Images to arrays of bytes, and what is to be learned of them; no neural network here.

pixels      one image file, upright, of one size and one number of channels
idx, npz, folder
            three ways to keep many of them, with labels, numbers or masks
corpus      which way it is, and what of it does not fit
index       all of them in one memory-mapped file
batches     some of them as a tensor, shifted and flipped if wanted
mask_names  a file for the mask of each image
generated   pictures that are drawn, with what is on them
"""

FAMILIES = ("mlp", "cnn", "vit")  # those that read images; here, so that the command line can tell without torch
