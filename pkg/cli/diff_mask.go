package cli

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// secretFields are the fields of a Secret that hold its values.
var secretFields = []string{"data", "stringData"}

func isSecret(doc map[string]any) bool { return doc["kind"] == "Secret" && doc["apiVersion"] == "v1" }

// maskDiffs hides the values of Secrets in differences, and those that annotations repeat, as kubectl's does.
func maskDiffs(list []fieldDiff, documents ...map[string]any) {
	values := secretValues(documents...)
	for i := range list {
		d := &list[i]
		switch first := d.path[0]; {
		case slices.Contains(secretFields, first.Field):
			d.before, d.after = drift.Mask(d.before), drift.Mask(d.after)
		case first.Field == "metadata" && len(d.path) == 1:
			d.before, d.after = maskAnnotations(d.before, values), maskAnnotations(d.after, values)
		case d.path.HasPrefix(fieldpath.New("metadata", "annotations")):
			d.before, d.after = maskRepeated(d.before, values), maskRepeated(d.after, values)
		}
	}
}

// maskedDocument is a document without the values of a Secret; any other as it is.
func maskedDocument(doc map[string]any) map[string]any {
	if !isSecret(doc) {
		return doc
	}
	values := secretValues(doc)
	out := maps.Clone(doc)
	for _, field := range secretFields {
		if v, ok := out[field]; ok {
			out[field] = drift.Mask(v)
		}
	}
	out["metadata"] = maskAnnotations(doc["metadata"], values)
	return out
}

// secretValues are the values of Secrets, as they stand and decoded.
func secretValues(documents ...map[string]any) []string {
	var values []string
	for _, doc := range documents {
		for _, field := range secretFields {
			entries, _ := doc[field].(map[string]any)
			for _, v := range entries {
				text, _ := v.(string)
				plain, err := base64.StdEncoding.DecodeString(text)
				if err == nil {
					values = append(values, string(plain))
				}
				values = append(values, text)
			}
		}
	}
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// maskAnnotations hides what annotations repeat of the values in a Secret's metadata.
func maskAnnotations(metadata any, values []string) any {
	meta, ok := metadata.(map[string]any)
	annotations, has := meta["annotations"]
	if !ok || !has {
		return metadata
	}
	out := maps.Clone(meta)
	out["annotations"] = maskRepeated(annotations, values)
	return out
}

// shortestRepeated is how long a value is at least that is looked for inside other texts: a shorter one stands in many by
// chance, a hash for one.
const shortestRepeated = 4

// maskRepeated hides texts in which one of the values stands.
func maskRepeated(v any, values []string) any {
	switch v := v.(type) {
	case string:
		repeats := func(value string) bool {
			return v == value || len(value) >= shortestRepeated && strings.Contains(v, value)
		}
		if slices.ContainsFunc(values, repeats) {
			return drift.Masked
		}
	case map[string]any:
		out := maps.Clone(v)
		for k := range out {
			out[k] = maskRepeated(out[k], values)
		}
		return out
	}
	return v
}
