package kept

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// documents are JSON texts, each with the reason for which it is tried.
var documents = map[string]string{
	"an object":                         `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`,
	"no field":                          `{}`,
	"spaces and lines":                  " {\n \"a\" : [ 1 , 2 ]\n}\n",
	"numbers at the limits":             `{"a":9007199254740993,"b":9223372036854775807,"c":9223372036854775808,"d":-0,"e":1e3,"f":1.0,"g":-9223372036854775808}`,
	"a number that is too large":        `{"a":1e999}`,
	"a name twice":                      `{"a":{"b":1},"a":{"c":2}}`,
	"names that differ in case":         `{"name":"a","Name":"b"}`,
	"null, true, false":                 `{"a":null,"b":true,"c":false,"d":[null]}`,
	"escapes":                           `{"a\u0062":"\u0000\n\"\\\u00e9 \ud83d\ude00"}`,
	"half of a surrogate pair":          `{"a":"\ud800x"}`,
	"not UTF-8":                         "{\"a\":\"\xff\",\"\xfe\":1}",
	"a text as long as those shared":    `{"a":"` + strings.Repeat("x", maxShort) + `","b":"` + strings.Repeat("x", maxShort+1) + `"}`,
	"empty texts":                       `{"":"","a":""}`,
	"not closed":                        `{"a":1`,
	"no comma":                          `{"a":1 "b":2}`,
	"a comma too many":                  `{"a":1,}`,
	"more behind it":                    `{"a":1}{"b":2}`,
	"something else behind it":          `{"a":1} x`,
	"a list":                            `[1]`,
	"a list that is not closed":         `{"a":[1`,
	"a text":                            `"a"`,
	"nothing":                           ``,
	"a control character":               "{\"a\":\"\x01\"}",
	"a number with a leading zero":      `{"a":01}`,
	"deep":                              `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
	"too deep":                          `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	"a head with other types":           `{"apiVersion":1,"metadata":{"name":2}}`,
	"metadata that is null":             `{"kind":"X","metadata":null}`,
	"a bookmark":                        `{"kind":"X","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}`,
	"an object that is being deleted":   `{"kind":"X","metadata":{"name":"a","deletionTimestamp":"t","finalizers":["b"],"annotations":{"c":"d"}}}`,
	"an object that has finalizers":     `{"kind":"X","metadata":{"name":"a","finalizers":["b"]}}`,
	"managedFields before and after it": `{"metadata":{"managedFields":[{"manager":"a"}],"name":"n"},"spec":{"managedFields":[{"manager":"b"}]}}`,
}

func TestDecodeObject(t *testing.T) {
	for reason, text := range documents {
		sameAsAPIMachinery(t, reason, []byte(text))
	}
}

func FuzzDecodeObject(f *testing.F) {
	for _, text := range documents {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameAsAPIMachinery(t, string(data), data) })
}

// sameAsAPIMachinery: both decoders accept a text, with the same result, or both refuse it.
func sameAsAPIMachinery(t *testing.T, reason string, data []byte) {
	t.Helper()
	var want map[string]any
	wantErr := utiljson.Unmarshal(data, &want)
	if want == nil && wantErr == nil {
		return // null: no object
	}
	got, err := decodeObject(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%.100s: the error is %v, not %v", reason, err, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%.100s:\n got %#v\nwant %#v", reason, got, want)
	}
	h, headErr := decodeHead(data)
	if !json.Valid(data) && headErr == nil {
		t.Fatalf("%.100s: the head has no error, the object has %v", reason, err)
	}
	if err == nil && headErr == nil {
		sameHead(t, reason, h, want)
	}
}

func sameHead(t *testing.T, reason string, h head, object map[string]any) {
	t.Helper()
	metadata, _ := object["metadata"].(map[string]any)
	text := func(m map[string]any, name string) string { s, _ := m[name].(string); return s }
	if h.Kind != text(object, "kind") || h.APIVersion != text(object, "apiVersion") {
		t.Fatalf("%.100s: the head has %s %s", reason, h.APIVersion, h.Kind)
	}
	if h.Metadata.Name != text(metadata, "name") && metadata != nil || string(h.Metadata.UID) != text(metadata, "uid") && metadata != nil {
		t.Fatalf("%.100s: the head has %+v", reason, h.Metadata)
	}
	var fields any
	if h.Metadata.ManagedFields != nil {
		if err := json.Unmarshal(h.Metadata.ManagedFields, &fields); err != nil {
			t.Fatalf("%.100s: %v", reason, err)
		}
	}
	if metadata != nil && (fields == nil) != (metadata["managedFields"] == nil) {
		t.Fatalf("%.100s: managedFields are %s", reason, h.Metadata.ManagedFields)
	}
}

// The head of a bookmark has its annotations, and that of an object that is being deleted its finalizers; other heads
// have neither.
func TestDecodeHead(t *testing.T) {
	for _, row := range []struct {
		reason      string
		annotations map[string]string
		finalizers  []string
	}{
		{"a bookmark", map[string]string{"k8s.io/initial-events-end": "true"}, nil},
		{"an object that is being deleted", nil, []string{"b"}},
		{"an object that has finalizers", nil, nil},
	} {
		h, err := decodeHead([]byte(documents[row.reason]))
		if err != nil || !maps.Equal(h.Metadata.Annotations, row.annotations) || !slices.Equal(h.Metadata.Finalizers, row.finalizers) {
			t.Errorf("%s: %+v, %v", row.reason, h.Metadata, err)
		}
	}
	if h, err := decodeHead([]byte(documents["a head with other types"])); err == nil {
		t.Errorf("a number for a text: %+v", h)
	}
}

// A watch is cut into events as API machinery's framer cuts it, whatever the size of the caller's buffer, and ends with
// the same error.
func TestFrames(t *testing.T) {
	large := `{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 5000) + `"}}`
	reset := errors.New("connection reset by peer")
	for _, row := range []struct {
		reason, stream string
		end            error
	}{
		{"events in lines", `{"a":1}` + "\n" + `{"b":2}` + "\n", io.EOF},
		{"events without a line between them", `{"a":1}{"b":[2]}`, io.EOF},
		{"an event that is larger than the buffer", large + "\n" + `{"a":1}`, io.EOF},
		{"the stream ends within an event", `{"a":1}` + "\n" + `{"b":`, io.EOF},
		{"the stream breaks within an event", `{"a":1}` + "\n" + `{"b":`, reset},
		{"the stream breaks between events", `{"a":1}` + "\n", reset},
		{"not JSON", `{"a":1}` + "\n" + `<html>`, io.EOF},
		{"nothing", ``, io.EOF},
	} {
		for _, size := range []int{8, 1024, 1 << 16} {
			stream := func() io.ReadCloser {
				return io.NopCloser(io.MultiReader(strings.NewReader(row.stream), iotest.ErrReader(row.end)))
			}
			got, gotErr := allFrames(framer{}.NewFrameReader(stream()), size)
			want, wantErr := allFrames(jsonserializer.Framer.NewFrameReader(stream()), size)
			if !slices.Equal(got, want) {
				t.Errorf("%s, buffer of %d: got %.200q, want %.200q", row.reason, size, got, want)
			}
			var syntax *json.SyntaxError
			if gotErr != wantErr && !errors.As(wantErr, &syntax) { //nolint:errorlint // watches compare errors, too
				t.Errorf("%s, buffer of %d: the error is %v, not %v", row.reason, size, gotErr, wantErr)
			}
		}
	}
}

// allFrames reads all events with a buffer of that size.
func allFrames(r io.Reader, size int) (list []string, _ error) {
	buffer, event := make([]byte, size), ""
	for {
		n, err := r.Read(buffer)
		event += string(buffer[:n])
		if err != nil && !errors.Is(err, io.ErrShortBuffer) {
			return list, err
		}
		if err == nil {
			list, event = append(list, event), ""
		}
	}
}
