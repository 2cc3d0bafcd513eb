// Package compile turns configs into pipelines: One compiles one config, All several. A Pipeline is immutable. It has
// what package desired renders by, what package health checks by, and what check says to the author.
//
// Its files are layers. Problems and the position of texts are at the bottom; above them expressions and templates,
// then one file for each section of the config, and One on top. Nothing is requested but the kinds that Options.Kinds
// looks up.
package compile
