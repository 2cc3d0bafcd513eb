package kept

import (
	utiljson "encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// upstreamOf is a custom resource with so many bytes of data, as a watch brings it.
func upstreamOf(size, i int) []byte {
	data, owned := map[string]any{}, map[string]any{}
	for k := range size / 64 {
		name := fmt.Sprintf("key-%04d", k)
		data[name], owned["f:"+name] = fmt.Sprintf("%d-%d-%s", i*7919%1000, k, strings.Repeat("x", 44)), map[string]any{}
	}
	text, err := utiljson.Marshal(map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": fmt.Sprintf("w-%d", i), "namespace": "bench", "uid": fmt.Sprint(i), "resourceVersion": "7",
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Apply", "apiVersion": "bench.example.com/v1",
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:data": owned}}}}},
		"spec": map[string]any{"data": data},
	})
	if err != nil {
		panic(err)
	}
	return text
}

// BenchmarkStages measures what is done with each event of an upstream: it is packed, compressed a while later, and read
// for a reconcile. An event of a downstream is decoded as a whole.
func BenchmarkStages(b *testing.B) {
	for _, size := range []int{500, 4000, 27000} {
		texts := NewTexts()
		kind := schema.GroupVersionKind{Group: "bench.example.com", Version: "v1", Kind: "Widget"}
		for i := range 3 * period { // the first ones are compressed without a dictionary
			texts.compress(kind, upstreamOf(size, i))
		}
		json, packed := upstreamOf(size, 1), &text{}
		packed.Store(texts.compress(kind, json))
		for stage, do := range map[string]func() error{
			"decode":   func() error { _, err := decodeObject(json); return err },
			"pack":     func() error { _, _, err := PackedCodec{Texts: texts}.Decode(json, nil, nil); return err },
			"compress": func() error { texts.compress(kind, json); return nil },
			"unpack":   func() error { _, err := packed.object(); return err },
		} {
			b.Run(fmt.Sprintf("%s/%d", stage, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
