package generated

import (
	"crypto/rand"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// SecretKeys are the keys that a document and the generated values give; nil for another kind than Secret.
func SecretKeys(d *operator.Downstream, doc map[string]any) *drift.Secret {
	if d.GVK() != corev1.SchemeGroupVersion.WithKind("Secret") {
		return nil
	}
	keys := map[string]bool{}
	for _, field := range []string{"data", "stringData"} {
		for key := range operator.AsMap(doc[field]) {
			keys[key] = true
		}
	}
	for _, key := range keysOf(d) {
		keys[key] = true
	}
	return &drift.Secret{Keys: slices.Sorted(maps.Keys(keys)), Content: d.View.Content(doc)}
}

// Keys names the generated fields of a downstream for a message.
func Keys(d *operator.Downstream) string {
	return "data." + strings.Join(keysOf(d), ", data.")
}

// HeldBy names the finalizers that can keep an object which has generated values from being gone once it is deleted;
// empty for none.
func HeldBy(d *operator.Downstream, live *drift.Live) string {
	if !d.HasGenerated() || live.Secret == nil {
		return ""
	}
	return live.Secret.HeldBy
}

// SendsInitial reports whether Document sends live values of fields that are set at creation only: they are stale as
// soon as someone else writes.
func SendsInitial(live *drift.Live) bool {
	return slices.ContainsFunc(live.Initial, SendsField)
}

// SendsField reports whether a document has the live value of a field that is set at creation only.
func SendsField(f drift.InitialField) bool { return f.Ours && !f.Others && f.Present }

// Placeholder is in the place of a generated value in a document that was not filled. It is not base64, so the API
// server refuses to store it.
const Placeholder = "(generated)"

// MakeRoom refuses a document that sets a generated key itself. data without any key is left out, as a projection has
// it.
func MakeRoom(d *operator.Downstream, doc map[string]any) error {
	if len(d.Generated) == 0 {
		return nil
	}
	data, ok := doc["data"].(map[string]any)
	for _, g := range d.Generated {
		if _, set := data[g.Key]; set {
			return redact.Errorf("the template sets data.%s, which is in generated: remove the key from one of the two", g.Key)
		}
	}
	if ok && len(data) == 0 {
		delete(doc, "data")
	}
	return nil
}

// At is what is known of the generated field k of live: it is sent with its live value, made, or left to others.
func At(d *operator.Downstream, live *drift.Live, k int) (sent, made bool) {
	if live == nil {
		return false, true
	}
	f := live.Initial[len(d.View.Initial)-len(d.Generated)+k]
	return SendsField(f), !f.Present
}

// WithPlaceholders returns doc with a placeholder for each generated value that is to be sent.
func WithPlaceholders(d *operator.Downstream, doc map[string]any, live *drift.Live) map[string]any {
	values := map[string]any{}
	for k, g := range d.Generated {
		if sent, made := At(d, live, k); sent || made {
			values[g.Key] = Placeholder
		}
	}
	return withData(doc, values)
}

func withData(doc, values map[string]any) map[string]any {
	if len(values) == 0 {
		return doc
	}
	data := maps.Clone(operator.AsMap(doc["data"]))
	if data == nil {
		data = map[string]any{}
	}
	maps.Copy(data, values)
	doc = maps.Clone(doc)
	doc["data"] = data
	return doc
}

// Sends reports whether an apply to live sends the live value of a generated field, which only the object itself has.
func Sends(d *operator.Downstream, live *drift.Live) bool {
	for k := range d.Generated {
		if sent, _ := At(d, live, k); sent {
			return true
		}
	}
	return false
}

// textOf is the value of a key of a Secret, decoded, if it has one.
func textOf(obj *unstructured.Unstructured, key string) (string, bool) {
	encoded, _ := operator.AsMap(obj.Object["data"])[key].(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	return string(text), err == nil && len(text) > 0
}

// Fill returns doc, as Document gave it, with the generated values: those of obj, of which live is the reading, and new
// ones for keys that it lacks. Both are nil at creation. random makes the text of a new one.
func Fill(
	d *operator.Downstream, doc map[string]any, live *drift.Live, obj *unstructured.Unstructured,
	random func(operator.GeneratedField) string,
) map[string]any {
	values := map[string]any{}
	for k, g := range d.Generated {
		switch sent, made := At(d, live, k); {
		case made:
			values[g.Key] = base64.StdEncoding.EncodeToString([]byte(random(g)))
		case sent && obj != nil:
			values[g.Key] = operator.AsMap(obj.Object["data"])[g.Key]
		}
	}
	return withData(doc, values)
}

// Random makes a generated value. Each character is as likely as any other: bytes beyond the last whole multiple of
// their number are thrown away. crypto/rand never fails; it ends the process instead.
func Random(g operator.GeneratedField) string {
	n := len(g.Characters)
	limit := 256 - 256%n
	out, buf := make([]byte, 0, g.Length), make([]byte, g.Length)
	for len(out) < g.Length {
		_, _ = rand.Read(buf)
		for _, b := range buf {
			if int(b) < limit && len(out) < g.Length {
				out = append(out, g.Characters[int(b)%n])
			}
		}
	}
	return string(out)
}
