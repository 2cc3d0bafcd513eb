// Package parsing parses the text of a template, without knowing its functions, and says where in it an error is.
package parsing
