// Package migrate rewrites the stored objects of a custom kind in the version in which its CustomResourceDefinition
// stores them now, so that an older version can be removed. It is safe beside operators and other writers, and can be
// begun again at any time.
package migrate
