// Package image tests the container image: the build by the Dockerfile, the content and configuration of the image, and
// the program in it with a numeric user, without rights and on a read-only file system. The tests need Linux and
// buildah, no registry and no network; run them with the tag `image` or `make image-test`.
package image
