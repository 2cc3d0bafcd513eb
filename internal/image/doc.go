// Package image holds the tests of the container image: that the Dockerfile
// builds, what is in the image and what its configuration says, and that the
// program in it works as a cluster runs it, by its number of a user, without
// rights and on a file system that cannot be written. The tests need Linux and
// buildah, no registry and no network; the tag `image` and `make image-test` run
// them.
package image
