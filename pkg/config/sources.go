package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Sources returns the files whose content makes this operator: the config file, its conventionsFile and its
// templateFiles, as errors name them, each once. Files that could not be read are among them: they may come to be.
// Standard input is not.
func (f *File) Sources() []string {
	var out []string
	add := func(path string) {
		if path != stdinName && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	add(f.Path)
	if name := f.sharedName(); name != "" {
		add(f.relative(name))
	}
	for _, d := range f.Downstreams {
		if d.TemplateFile != "" {
			add(f.relative(d.TemplateFile))
		}
	}
	if b := f.Deletion.Before; b != nil && b.TemplateFile != "" {
		add(f.relative(b.TemplateFile))
	}
	return out
}

// Digest returns a digest, in hexadecimal digits, of the operator as loaded: all layers and defaults, the texts of
// templates included. Where a value stands is no part of it: not the order of keys, comments, the names of files, nor
// whether a template is inline. Nor is guard.confirmed, which names a digest itself.
func (f *File) Digest() string {
	op := f.Operator
	op.ConventionsFile = ""
	op.Downstreams = slices.Clone(op.Downstreams)
	for i := range op.Downstreams {
		op.Downstreams[i].TemplateFile = ""
	}
	if b := op.Deletion.Before; b != nil {
		before := *b
		before.TemplateFile = ""
		op.Deletion.Before = &before
	}
	if g := op.Guard; g != nil {
		guard := *g
		guard.Confirmed = ""
		op.Guard = &guard
	}
	text, err := json.Marshal(op) // which sorts the keys of maps
	if err != nil {
		panic("writing the operator as JSON: " + err.Error()) // its values came from JSON: cannot happen
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
