package config

import "embed"

// TypesSource are the files of the types. Their doc comments are the descriptions in the JSON Schema.
//
//go:embed types*.go */types.go
var TypesSource embed.FS
