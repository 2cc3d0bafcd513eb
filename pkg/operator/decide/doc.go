// Package decide says what is to be done about an upstream and its objects, and why. It is pure: it reads the values of
// package operator and nothing else, so what a preview says is what happens.
//
// Decide asks a chain of small functions about each object; the first one that has an answer decides.
package decide
