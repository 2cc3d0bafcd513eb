package docdiff

import (
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// maskDiffs hides values of Secrets in differences; nil words hide none.
func maskDiffs(list []Field, words redact.Words) {
	if words == nil {
		return
	}
	for i := range list {
		d := &list[i]
		fields := fieldsOf(d.Path)
		d.words, d.Before, d.After = words, words.Value(d.Before, fields), words.Value(d.After, fields)
	}
}

// fieldsOf are the fields that a path begins with.
func fieldsOf(path fieldpath.Path) []string {
	var fields []string
	for _, step := range path {
		if step.Kind != fieldpath.FieldStep {
			break
		}
		fields = append(fields, step.Field)
	}
	return fields
}
