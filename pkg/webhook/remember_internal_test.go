package webhook

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert"
)

var (
	thing = schema.GroupKind{Group: "example.com", Kind: "Thing"}
	here  = Endpoint{URL: "https://a.example.com"}
)

// cluster is a publisher, with an API server that has one definition and one Secret, and notes what is applied.
type cluster struct {
	*Publisher
	current, next *pair
	crd           *apiextensionsv1.CustomResourceDefinition
	unreadable    error // why the definition cannot be read
	applied       []unstructured.Unstructured
	find          func() ([]Served, []schema.GroupKind, error)
}

func newCluster(t *testing.T, conversion map[string]any, versions ...string) *cluster {
	t.Helper()
	both := issuedPair(t)
	c := &cluster{current: both.current, next: both.next, crd: &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com", ResourceVersion: "7"},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Conversion: typed(conversion)},
	}}
	for _, name := range versions {
		c.crd.Spec.Versions = append(c.crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name})
	}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		object := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(c.crd)).In(t)
		return true, &unstructured.Unstructured{Object: object}, c.unreadable
	})
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		u := unstructured.Unstructured{}
		must.Do(t, json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &u.Object))
		c.applied = append(c.applied, u)
		return true, &u, nil
	})
	at := types.NamespacedName{Namespace: "ops", Name: "certificate"}
	secrets := kubefake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Data: both.data()})
	c.Publisher = &Publisher{
		Find:   func(context.Context) ([]Served, []schema.GroupKind, error) { return c.find() },
		Client: client, Endpoint: here, Leads: func() bool { return true }, Forget: func(string) {}, Log: logr.Discard(),
		Certificates: &Certificates{Secrets: secrets.CoreV1(), At: at, Hosts: rotationHosts, Log: logr.Discard()},
	}
	return c
}

// finds has the publisher find from now on what is given.
func (c *cluster) finds(served []Served, unread []schema.GroupKind, err error) {
	c.find = func() ([]Served, []schema.GroupKind, error) { return served, unread, err }
}

func (c *cluster) served(converter *convert.Converter) []Served {
	return []Served{{Name: "things", Kind: thing, Converter: converter, FieldManager: "things", CRD: c.crd}}
}

// Without a single version left to be converted, the strategy is None; but only in the definition that was looked at.
func TestNoneIsOfOneDefinition(t *testing.T) {
	t.Parallel()
	c := newCluster(t, here.Conversion(false, nil), "v1")
	c.finds(c.served(nil), nil, nil)
	must.Do(t, c.tick(t.Context()))
	if len(c.applied) != 1 || c.applied[0].GetResourceVersion() != "7" {
		t.Fatalf("applied is %v", c.applied)
	}
	if strategy, _, _ := unstructured.NestedString(c.applied[0].Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("the strategy is %q", strategy)
	}
}

// As long as a definition names this webhook, its caBundle follows the certificate, and the next certificate waits for
// it: also if the config has been removed or is not proven any more, or the definition cannot be read.
func TestServedConversionKeepsItsTrust(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason  string
		change  func(*cluster)
		at      Endpoint
		applies bool
	}{
		{"the config is not proven any more", func(c *cluster) { c.finds(c.served(nil), nil, errors.New("not proven")) }, here, true},
		{"the config is gone", func(c *cluster) { c.finds(nil, nil, nil) }, here, true},
		{"the definition cannot be read", func(c *cluster) {
			c.unreadable = errors.New("forbidden")
			c.finds(nil, []schema.GroupKind{thing}, c.unreadable)
		}, here, true},
		{"it names another webhook", func(c *cluster) { c.finds(nil, nil, nil) }, Endpoint{URL: "https://b.example.com"}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nil, "v1beta1", "v1")
			trust := (&bundle{trusted: []*x509.Certificate{c.current.authority}}).trust()
			c.crd.Spec.Conversion = typed(row.at.Conversion(false, trust))
			c.finds(c.served(&convert.Converter{}), nil, nil)
			c.Leads = func() bool { return false }
			if err := c.tick(t.Context()); err != nil || c.Ready() != nil {
				t.Fatal(err, c.Ready())
			}
			c.Leads = func() bool { return true }
			row.change(c)
			_ = c.tick(t.Context())
			if c.Ready() != nil {
				t.Errorf("it is not ready: %v", c.Ready())
			}
			isApplied := len(c.applied) == 1 && c.applied[0].GetName() == c.crd.Name
			if isApplied != row.applies {
				t.Errorf("applied is %v", c.applied)
			}
			if accepted := c.accepts(c.all())(c.next); accepted == row.applies {
				t.Errorf("that the next certificate may be served now is %t", accepted)
			}
		})
	}
}

// all are the definitions that the publisher knows.
func (p *Publisher) all() (list []Served) {
	for _, s := range p.known {
		list = append(list, s)
	}
	return list
}

// A process that cannot read a definition, which may name this webhook, is not ready: in a rollout it would replace one
// that converts.
func TestUnreadDefinition(t *testing.T) {
	t.Parallel()
	c := newCluster(t, here.Conversion(false, nil), "v1beta1", "v1")
	c.finds(nil, []schema.GroupKind{thing}, errors.New("forbidden"))
	_ = c.tick(t.Context())
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "Thing.example.com cannot be read") {
		t.Errorf("want an error that says that it is not ready, got %v", err)
	}
	c.finds(nil, nil, errors.New("another config is wrong"))
	_ = c.tick(t.Context())
	if err := c.Ready(); err != nil {
		t.Error(err)
	}
	c.finds(nil, []schema.GroupKind{thing}, errors.New("forbidden"))
	_ = c.tick(t.Context())
	if err := c.Ready(); err != nil {
		t.Errorf("it was ready before: %v", err)
	}
}

// What was proven for an earlier schema is served by a new process, where API servers ask for it. The process becomes
// ready only if no other one answers: a rollout must not replace those, and without any nothing could be read.
func TestUnprovenIsServedAgain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason     string
		conversion map[string]any
		answers    bool
		converter  *convert.Converter
		serves     bool
		ready      bool
	}{
		{reason: "another process answers", conversion: here.Conversion(false, nil), answers: true,
			converter: &convert.Converter{}, serves: true},
		{reason: "none does", conversion: here.Conversion(false, nil), converter: &convert.Converter{}, serves: true, ready: true},
		{reason: "it was never proven", conversion: here.Conversion(false, nil)},
		{reason: "it was never served", conversion: map[string]any{"strategy": "None"}, converter: &convert.Converter{}, ready: true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, row.conversion, "v1beta1", "v1")
			var reasons []string
			c.Warn = func(_ Served, reason, text string) { reasons = append(reasons, reason+": "+text) }
			c.isAnsweredBy = func(context.Context, Served) bool { return row.answers }
			served := c.served(row.converter)
			served[0].Unproven = "it is not proven"
			c.finds(served, nil, errors.New("it is not proven"))
			for range 2 {
				_ = c.tick(t.Context())
			}
			must.Same(t, row.serves, c.Converter(thing) != nil, "it serves the conversion")
			if err := c.Ready(); (err == nil) != row.ready {
				t.Errorf("ready: %v", err)
			}
			if len(reasons) != 1 || reasons[0] != "ConversionUnproven: it is not proven" {
				t.Errorf("events are %v", reasons)
			}
		})
	}
}

// A new process serves what was proven before Find, which may have to prove for seconds, with the certificate that
// definitions trust.
func TestProvenIsServedAtOnce(t *testing.T) {
	t.Parallel()
	for _, unproven := range []string{"", "the schemas have changed since the proof"} {
		c := newCluster(t, here.Conversion(false, nil), "v1beta1", "v1")
		converter := &convert.Converter{}
		c.FindProven = func(context.Context) []Served {
			served := c.served(converter)
			served[0].Unproven = unproven
			return served
		}
		ctx, cancel := context.WithCancel(t.Context())
		c.find = func() ([]Served, []schema.GroupKind, error) {
			cancel() // Start returns
			if c.Converter(thing) != converter || c.Certificates.served.Load() == nil {
				t.Errorf("unproven %q: before Find, it serves %v", unproven, c.Converter(thing))
			}
			if c.Ready() == nil {
				t.Errorf("unproven %q: it is ready before Find", unproven)
			}
			return nil, nil, errors.New("it ends")
		}
		c.Interval = Interval
		must.Do(t, c.Start(ctx))
	}
}

// A served version that nothing converts is reported by an event and the metric, once; the others are converted.
func TestMissingVersionIsReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t, here.Conversion(false, nil), "v1beta1", "v1", "v2")
	var reasons []string
	c.Warn = func(_ Served, reason, text string) { reasons = append(reasons, reason+": "+text) }
	const missing = "version v2 is served and is missing"
	served := c.served(&convert.Converter{})
	served[0].Missing = missing
	c.finds(served, nil, nil)
	value := func() float64 {
		m := &dto.Metric{}
		must.Do(t, published.WithLabelValues(c.served(nil)[0].CRD.Name).Write(m))
		return m.GetGauge().GetValue()
	}
	for range 2 {
		_ = c.tick(t.Context())
	}
	if len(reasons) != 1 || reasons[0] != "ConversionIncomplete: "+missing || c.Converter(thing) == nil || value() != 0 {
		t.Errorf("events are %v, the metric is %v, it serves %v", reasons, value(), c.Converter(thing))
	}
	served[0].Missing = ""
	if _ = c.tick(t.Context()); value() != 1 {
		t.Errorf("the metric is %v once the version is there", value())
	}
}
