"""Image pipelines and simulations, in three frameworks and in Halide; the group ``pipelines``.

Packages by subject, each with a module per language: functions of the same names that compute the
same, written as one writes them there. Images are H x W, or C x H x W, of float32 from 0 to 1;
where nothing else is said, the result has only the pixels whose neighbourhoods lie in the image.
"""
