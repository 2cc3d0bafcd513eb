package pipeline

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// GeneratedField is a random value of a Secret, under a key of its data.
type GeneratedField struct {
	Key    string
	Length int
	// Characters are those that it is made of, each once.
	Characters string
}

// GeneratedPlaceholder stands for a generated value in a document that was not filled. It is not base64, so the API server
// refuses to store it.
const GeneratedPlaceholder = "(generated)"

// makeRoom refuses a document that sets a generated key itself. data without any key is left out, as a projection has it.
func (d *Downstream) makeRoom(doc map[string]any) error {
	if len(d.generated) == 0 {
		return nil
	}
	data, ok := doc["data"].(map[string]any)
	for _, g := range d.generated {
		if _, set := data[g.Key]; set {
			return redact.Errorf("the template sets data.%s, which is in generated: remove the key from one of the two", g.Key)
		}
	}
	if ok && len(data) == 0 {
		delete(doc, "data")
	}
	return nil
}

// HasGenerated reports whether objects of the downstream have generated values.
func (d *Downstream) HasGenerated() bool { return len(d.generated) > 0 }

// generatedAt is what is known of the generated field k of live: it is sent with its live value, made, or left to others.
func (d *Downstream) generatedAt(live *drift.Live, k int) (sent, made bool) {
	if live == nil {
		return false, true
	}
	f := live.Initial[len(d.initial)-len(d.generated)+k]
	return sendsInitial(f), !f.Present
}

// withPlaceholders returns doc with a placeholder for each generated value that is to be sent.
func (d *Downstream) withPlaceholders(doc map[string]any, live *drift.Live) map[string]any {
	values := map[string]any{}
	for k, g := range d.generated {
		if sent, made := d.generatedAt(live, k); sent || made {
			values[g.Key] = GeneratedPlaceholder
		}
	}
	return withData(doc, values)
}

func withData(doc, values map[string]any) map[string]any {
	if len(values) == 0 {
		return doc
	}
	data := maps.Clone(asMap(doc["data"]))
	if data == nil {
		data = map[string]any{}
	}
	maps.Copy(data, values)
	doc = maps.Clone(doc)
	doc["data"] = data
	return doc
}

// SendsGenerated reports whether an apply to live sends the live value of a generated field, which only the object itself has.
func (d *Downstream) SendsGenerated(live *drift.Live) bool {
	for k := range d.generated {
		if sent, _ := d.generatedAt(live, k); sent {
			return true
		}
	}
	return false
}

// GeneratedOf are the generated values of a Secret, decoded, by their keys.
func (d *Downstream) GeneratedOf(obj *unstructured.Unstructured) map[string]string {
	values := map[string]string{}
	for _, g := range d.generated {
		encoded, _ := asMap(obj.Object["data"])[g.Key].(string)
		if text, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(text) > 0 {
			values[g.Key] = string(text)
		}
	}
	return values
}

// RenamedKey is the value of the key that generated had instead of the one that obj lacks, by the new key: the only one that our manager
// applied and doc does not have. It is about an object whose hash is that of doc, so that only generated has changed. nil if there is none.
func (d *Downstream) RenamedKey(obj *unstructured.Unstructured, doc map[string]any, manager string) map[string]string {
	data := asMap(obj.Object["data"])
	var lacking, dropped []string
	for _, g := range d.generated {
		if _, ok := data[g.Key]; !ok {
			lacking = append(lacking, g.Key)
		}
	}
	applied, _ := drift.Project(obj, manager)
	for key := range asMap(applied["data"]) {
		isGenerated := slices.ContainsFunc(d.generated, func(g GeneratedField) bool { return g.Key == key })
		if _, ok := asMap(doc["data"])[key]; !ok && !isGenerated {
			dropped = append(dropped, key)
		}
	}
	if len(lacking) != 1 || len(dropped) != 1 {
		return nil
	}
	encoded, _ := data[dropped[0]].(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(text) == 0 {
		return nil
	}
	return map[string]string{lacking[0]: string(text)}
}

// Fill returns doc, as Document gave it, with the generated values: those of obj, of which live is the reading, and new ones
// for keys that it lacks. Both are nil at creation. random makes the text of a new one.
func (d *Downstream) Fill(doc map[string]any, live *drift.Live, obj *unstructured.Unstructured, random func(GeneratedField) string) map[string]any {
	values := map[string]any{}
	for k, g := range d.generated {
		switch sent, made := d.generatedAt(live, k); {
		case made:
			values[g.Key] = base64.StdEncoding.EncodeToString([]byte(random(g)))
		case sent && obj != nil:
			values[g.Key] = asMap(obj.Object["data"])[g.Key]
		}
	}
	return withData(doc, values)
}

// lacksGenerated is about an object that is as it was applied, but for a generated value that somebody removed, or that the
// config did not have when it was applied.
func lacksGenerated(s *subject) (Outcome, bool) {
	if !s.View.LacksGenerated(s.facts.Live) {
		return Outcome{}, false
	}
	switch s.Downstream.Config.Drift.Policy {
	case config.DriftIgnore:
		return Outcome{}, false
	case config.DriftReport:
		return Outcome{State: StateDrifted, Message: s.desired.Target.String() + " lacks a generated value; drift.policy is Report"}, true
	}
	return Outcome{State: StateRepair, Action: ActionApply,
		Message: withContenders(s.desired.Target.String()+" lacks a generated value, which is made anew", s.facts)}, true
}
