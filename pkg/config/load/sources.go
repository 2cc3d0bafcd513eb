package load

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/document"
)

// Sources returns the files whose content makes this operator: the config file, its conventionsFile, its helpersFile
// and its templateFiles, as errors name them, each once. Files that could not be read are among them: they may be
// created later. Standard input is not.
func (f *File) Sources() []string {
	var out []string
	add := func(path string) {
		if path != document.StdinName && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	add(f.Path)
	for _, name := range f.Named() {
		add(f.Place(name))
	}
	return out
}

// Named returns the files that the config names, as it names them: its conventionsFile, helpersFile and templateFiles.
// Place says where they are.
func (f *File) Named() []string {
	var names []string
	if name := f.sharedName(); name != "" {
		names = append(names, name)
	}
	if f.HelpersFile != "" {
		names = append(names, f.HelpersFile)
	}
	for _, d := range f.Downstreams {
		if d.TemplateFile != "" {
			names = append(names, d.TemplateFile)
		}
	}
	if b := f.Deletion.Before; b != nil && b.TemplateFile != "" {
		names = append(names, b.TemplateFile)
	}
	return names
}

// Kinds returns the kinds that the config names: the upstream's, then those of the downstreams, of the inputs and of
// deletion.before. A kind that it names twice is listed twice. Rows have no kind that an API server knows.
func (f *File) Kinds() []schema.GroupVersionKind {
	var list []schema.GroupVersionKind
	if f.Source == nil {
		list = append(list, schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind))
	}
	for _, d := range f.Downstreams {
		list = append(list, schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
	}
	for _, in := range f.Inputs {
		if in.SQL != nil {
			continue
		}
		list = append(list, schema.FromAPIVersionAndKind(in.APIVersion, in.Kind))
	}
	if b := f.Deletion.Before; b != nil {
		list = append(list, schema.FromAPIVersionAndKind(b.APIVersion, b.Kind))
	}
	return list
}

// Digest returns a digest, in hexadecimal digits, of the operator as loaded: all layers and defaults, the texts of
// templates included. The place of a value is not a part of it: not the order of keys, comments, the names of files,
// nor whether a template is inline. Nor are the conversion, watch.schema and watch.acknowledged, which change no
// downstream, and guard.confirmed, which names a digest itself.
func (f *File) Digest() string {
	op := f.Operator
	op.ConventionsFile, op.HelpersFile, op.Conversion = "", "", nil
	op.Watch.Schema, op.Watch.Acknowledged = nil, nil
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
