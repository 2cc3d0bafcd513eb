package load

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// File is one loaded operator and the places its values came from.
type File struct {
	config.Operator
	*document.Document               // its values hold all layers once loaded
	problems           config.Errors // what the loader found wrong
	unknown            []string      // display paths of fields that do not exist
	overrides          []override
	shared             *shared        // the file that conventionsFile names, nil for none
	described          map[string]any // the OpenAPI schema of .spec that watch.schema describes
	follows            *ActivationFile
}

// Valid reports whether nothing was found wrong in this file. A file with errors is returned by Operators too, so
// that later stages can report theirs in the same run; it must not be run.
func (f *File) Valid() bool { return len(f.problems) == 0 }

// Problems are what Operators found wrong in this file.
func (f *File) Problems() config.Errors { return f.problems }

// TemplatePos says where the first line of downstreams[i]'s template is: the config file or the
// templateFile, and the line in it. Line n of the template is at line+n-1. For a block scalar that is the
// line below its |, for a plain or quoted text the line where it begins.
func (f *File) TemplatePos(i int) (file string, line int) {
	if i >= 0 && i < len(f.Downstreams) {
		if name := f.Downstreams[i].TemplateFile; name != "" {
			return f.Place(name), 1
		}
	}
	return f.TextPos(fmt.Sprintf("downstreams[%d].template", i))
}

// BeforeTemplatePos says where the first line of deletion.before's template is, as TemplatePos does.
func (f *File) BeforeTemplatePos() (file string, line int) {
	if b := f.Deletion.Before; b != nil && b.TemplateFile != "" {
		return f.Place(b.TemplateFile), 1
	}
	return f.TextPos("deletion.before.template")
}

// HelpersPos says where the first line of the helpers is, as TemplatePos does.
func (f *File) HelpersPos() (file string, line int) {
	if name := f.HelpersFile; name != "" {
		return f.Place(name), 1
	}
	return f.TextPos("helpers")
}

// identify refuses what is not of the kind that is wanted: nothing can be said about its other fields.
func (f *File) identify(wanted string) *config.Error {
	apiVersion, kind := f.Values["apiVersion"], f.Values["kind"]
	holder := map[string]string{config.Kind: "an operator's", config.ConventionsKind: "a file of conventions"}[wanted]
	group, _, _ := strings.Cut(config.APIVersion, "/")
	a, _ := apiVersion.(string)
	switch {
	case a != config.APIVersion && strings.HasPrefix(a, group+"/"):
		return f.Errorf("apiVersion", "write "+config.APIVersion, "unknown version %q", document.Clip(a))
	case a != config.APIVersion:
		return f.Errorf("apiVersion", "begin the file with apiVersion: "+config.APIVersion+" and kind: "+wanted,
			"%s, not %s", given(apiVersion), holder)
	case kind == config.ConventionsKind && wanted == config.Kind:
		return f.Errorf("kind", "name the file in an operator's conventionsFile",
			"the file holds conventions, not an operator")
	case kind == config.Kind && wanted == config.ConventionsKind:
		return f.Errorf("kind", "name a file of kind: "+config.ConventionsKind+" in the operator's conventionsFile",
			"the file holds an operator, not conventions")
	case kind != wanted:
		return f.Errorf("kind", "write kind: "+wanted, "%s, wanted %s", given(kind), wanted)
	}
	return nil
}

func given(v any) string {
	if v == nil {
		return "required value is missing"
	}
	return fmt.Sprintf("found %q", document.Clip(fmt.Sprint(v)))
}
