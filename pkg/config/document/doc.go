// Package document reads one YAML file: values as kubectl reads them, the line of each, and all that is wrong with the
// text. Errors of later stages take their line from here.
package document
