package cli

import (
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// wordsOf are all that is shown of the objects of a downstream by its index; nil if all of them is.
func wordsOf(pl *pipeline.Pipeline, index int) redact.Words {
	switch {
	case index >= 0 && index < len(pl.Downstreams):
		return pl.Downstreams[index].Words
	case index == pipeline.BeforeIndex && pl.Before != nil:
		return pl.Before.Object.Words
	}
	return nil
}

// maskDiffs hides values of Secrets in differences; nil words hide none.
func maskDiffs(list []fieldDiff, words redact.Words) {
	if words == nil {
		return
	}
	for i := range list {
		d := &list[i]
		fields := fieldsOf(d.path)
		d.words, d.before, d.after = words, words.Value(d.before, fields), words.Value(d.after, fields)
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
