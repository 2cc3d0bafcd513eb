// Package generate makes, from loaded configs, what else a cluster needs for
// them: the rights of whoever carries them out, admission policies, and what
// other tools need to know. One file a product.
//
// It is pure: what is known of kinds comes in, objects or text go out. It reads
// no files, asks no API server, and installs nothing; the command line prints
// what it makes, and people apply it.
package generate
