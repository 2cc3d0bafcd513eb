package convert_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	conversionwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert"
)

// A conversion written by hand with controller-runtime, equal to that of hostPorts.

type handV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Host string `json:"host"`
		Port int32  `json:"port"`
	} `json:"spec"`
}

func (h *handV1) Hub() {}

func (h *handV1) DeepCopyObject() runtime.Object {
	c := *h
	h.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type handV1Beta1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		HostPort string `json:"hostPort"`
	} `json:"spec"`
}

func (h *handV1Beta1) DeepCopyObject() runtime.Object {
	c := *h
	h.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func (h *handV1Beta1) ConvertTo(to conversion.Hub) error {
	hub := to.(*handV1)
	host, text, _ := strings.Cut(h.Spec.HostPort, ":")
	port, err := strconv.ParseInt(text, 10, 32)
	hub.ObjectMeta, hub.Spec.Host, hub.Spec.Port = h.ObjectMeta, host, int32(port)
	return err
}

func (h *handV1Beta1) ConvertFrom(from conversion.Hub) error {
	hub := from.(*handV1)
	h.ObjectMeta, h.Spec.HostPort = hub.ObjectMeta, fmt.Sprintf("%s:%d", hub.Spec.Host, hub.Spec.Port)
	return nil
}

func handwritten() http.Handler {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "CronTab"}, &handV1{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "CronTab"}, &handV1Beta1{})
	return conversionwebhook.NewWebhookHandler(scheme, conversionwebhook.NewRegistry())
}

// BenchmarkAgainstHandwritten sends the same review to a webhook written by hand and to a conversion by two
// expressions, in turn. It measures the time from request to response, without a network.
func BenchmarkAgainstHandwritten(b *testing.B) {
	for _, n := range []int{1, 1000} {
		objects := make([]string, n)
		for i := range objects {
			objects[i] = stored
		}
		body := reviewOf("example.com/v1", objects...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			handlers := []http.Handler{handwritten(), hostPorts(b)}
			var took [2]time.Duration
			for b.Loop() {
				for i, h := range handlers {
					begun := time.Now()
					recorder := httptest.NewRecorder()
					h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
					if took[i] += time.Since(begun); !strings.Contains(recorder.Body.String(), `"port":1`) {
						b.Fatal(recorder.Body.String())
					}
				}
			}
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N*n), "µs/object-by-hand")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N*n), "µs/object")
			b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
		})
	}
}

// stored is an object as the API server has it.
const stored = `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a","namespace":"ns","uid":` +
	`"508e2e5a-a1fe-4ebc-b840-129f3ddfab7a","resourceVersion":"209","generation":1,"creationTimestamp":"2026-11-23T08:34:52Z",` +
	`"labels":{"app":"shop","team":"checkout"},"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"example.com/v1beta1",` +
	`"time":"2026-11-23T08:34:52Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{},"f:team":{}}},` +
	`"f:spec":{"f:hostPort":{}}}}]},"spec":{"hostPort":"h:1"}}`

// BenchmarkConvert converts an object to the hub and back: by two moves in each direction, and by three expressions in
// all.
func BenchmarkConvert(b *testing.B) {
	archive := must.Get(txtar.ParseFile("testdata/hostport.txtar")).In(b)
	version := "{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, " +
		"properties: {%s: {type: string}, %s: {type: string}}}}}}}"
	crd := "{spec: {group: example.com, names: {plural: crontabs, kind: CronTab}, versions: [" +
		fmt.Sprintf(version, "v1beta1", false, "hostPort", "other") + ", " + fmt.Sprintf(version, "v1", true, "host", "moved") + "]}}"
	moves, problems := compile(b, []byte(crd),
		[]byte("{hub: v1, spokes: [{version: v1beta1, rules: [{move: .spec.hostPort, to: .spec.host}, {move: .spec.other, to: .spec.moved}]}]}"))
	if len(problems) > 0 {
		b.Fatal(problems[0])
	}
	expressions, problems := compile(b, archive.Files[0].Data, archive.Files[1].Data)
	if len(problems) > 0 {
		b.Fatal(problems[0])
	}
	for name, c := range map[string]*convert.Converter{"moves": moves, "expressions": expressions} {
		b.Run(name, func(b *testing.B) {
			obj := map[string]any{"apiVersion": "example.com/v1beta1", "kind": "CronTab", "metadata": map[string]any{"name": "a"},
				"spec": map[string]any{"hostPort": "h:1"}}
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, errors.Join(c.Convert(b.Context(), obj, "v1"), c.Convert(b.Context(), obj, "v1beta1")))
			}
		})
	}
}
