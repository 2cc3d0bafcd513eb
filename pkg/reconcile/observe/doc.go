// Package observe says what is known of one upstream: its inputs, its objects and what they are compared with, by the
// caches, by responses that are newer and by what is remembered. It sends no requests.
package observe
