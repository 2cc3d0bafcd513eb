package kept

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestCutEnvelope(t *testing.T) {
	for _, row := range []struct {
		reason, text, kind, object string
		ok                         bool
	}{
		{"as API servers write it", `{"type":"ADDED","object":{"kind":"X"}}` + "\n", "ADDED", `{"kind":"X"}`, true},
		{"an object that looks like an end", `{"type":"MODIFIED","object":{"a":{"b":"}}"}}}`, "MODIFIED", `{"a":{"b":"}}"}}`, true},
		{"spaces, as a proxy may put", `{"type": "ADDED", "object": {}}`, "", "", false},
		{"the other order", `{"object":{},"type":"ADDED"}`, "", "", false},
		{"more behind the object", `{"type":"ADDED","object":{},"more":1}`, "", "", false},
		{"no object", `{"type":"ADDED","object":null}`, "", "", false},
		{"nothing", ``, "", "", false},
	} {
		kind, object, ok := cutEnvelope([]byte(row.text))
		if kind != row.kind || string(object) != row.object || ok != row.ok {
			t.Errorf("%s: got %q %q %v", row.reason, kind, object, ok)
		}
		event := &metav1.WatchEvent{}
		if _, _, err := (envelopeCodec{}).Decode([]byte(row.text), nil, event); (err == nil) != (row.text != "") {
			t.Errorf("%s: %v", row.reason, err)
		} else if row.text != "" && event.Type == "" {
			t.Errorf("%s: the long way finds no type", row.reason)
		}
	}
}

// What comes out of the cache is what went in, less managedFields: numbers, key order and odd texts included.
func TestPackedCodec(t *testing.T) {
	for _, row := range []struct{ reason, in, want string }{
		{"as it came", `{"apiVersion":"v1","kind":"X","metadata":{"managedFields":[{"manager":"a"}],"name":"n","uid":"u","resourceVersion":"7"},"spec":{"n":9007199254740993,"s":"\u0000é"}}`,
			`{"apiVersion":"v1","kind":"X","metadata":{"name":"n","resourceVersion":"7","uid":"u"},"spec":{"n":9007199254740993,"s":"\u0000é"}}`},
		{"a spec that repeats the managedFields", `{"apiVersion":"v1","kind":"X","metadata":{"managedFields":[{"manager":"a"}],"name":"n"},"spec":{"managedFields":[{"manager":"a"}]}}`,
			`{"apiVersion":"v1","kind":"X","metadata":{"name":"n"},"spec":{"managedFields":[{"manager":"a"}]}}`},
		{"none at all", `{"apiVersion":"v1","kind":"X","metadata":{"name":"n"}}`, `{"apiVersion":"v1","kind":"X","metadata":{"name":"n"}}`},
	} {
		obj, gvk, err := (PackedCodec{Texts: NewTexts()}).Decode([]byte(row.in), nil, nil)
		if err != nil || gvk.Kind != "X" {
			t.Fatalf("%s: %v %v", row.reason, gvk, err)
		}
		u, err := obj.(*Packed).Unpack()
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := utiljson.Marshal(u.Object); string(got) != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.reason, got, row.want)
		}
	}
}

// The API server's refusals must be read as such, whatever the codec.
func TestCodecsReadStatus(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Expired","code":410}`
	for _, codec := range []runtime.Decoder{ObjectCodec{}, PackedCodec{}} {
		obj, _, err := codec.Decode([]byte(text), nil, nil)
		if s, ok := obj.(*metav1.Status); err != nil || !ok || s.Code != 410 {
			t.Errorf("%T: %v %v", codec, obj, err)
		}
	}
}

// The writers of an object, in both orders in which API servers write the keys of managedFields.
func TestWriters(t *testing.T) {
	for _, row := range []struct {
		reason, fields string
		want           Writers
	}{
		{"as built-in kinds have it", `[{"manager":"b","operation":"Apply","apiVersion":"example.com/v1","time":"t","fieldsType":"FieldsV1","fieldsV1":{}},` +
			`{"manager":"a","operation":"Update","apiVersion":"example.com/v1beta1","fieldsV1":{}}]`, Writers{"b\x00", "v1\x00v1beta1\x00"}},
		{"as custom kinds have it", `[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:apiVersion":{}},"manager":"b","operation":"Apply"},` +
			`{"apiVersion":"example.com/v1","manager":"a","operation":"Apply"}]`, Writers{"b\x00a\x00", "v1\x00"}},
		{"keys of lists look like entries", `[{"apiVersion":"example.com/v1","fieldsV1":{"k:{\"apiVersion\":\"example.com/v9\",\"manager\":\"x\"}":{}},` +
			`"manager":"a","operation":"Update"}]`, Writers{"", "v1\x00"}},
		{"another group", `[{"apiVersion":"other.com/v1","manager":"a","operation":"Update"}]`, Writers{}},
		{"none", ``, Writers{}},
	} {
		if got := writersIn([]byte(row.fields), "example.com").Value(); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}
