// Package convert converts custom resources between the versions of their kind, as a config declares it: each spoke to the hub and
// back. It proves that what is converted there and back is what it was, over objects that it makes from the schemas, before
// anything is served. It makes no requests.
package convert
