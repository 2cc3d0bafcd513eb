// Package webhook serves conversions to API servers: it keeps a certificate in a Secret and replaces it before it
// expires, answers reviews, and puts the endpoint into the CustomResourceDefinitions whose conversions it serves.
package webhook
