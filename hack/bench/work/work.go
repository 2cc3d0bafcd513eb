// Package work describes the work that the benchmark gives to each program: a ConfigMap for each Widget, with the
// Widget's data and a value that all of them read from one other ConfigMap, and a Ready condition on the Widget. It has
// the typed Widget for programs in Go, and flags and metrics that they share.
package work

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// GroupVersion is that of Widget.
var GroupVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

const (
	// ManagedLabel is on each ConfigMap that a program makes; its value is the name of the program.
	ManagedLabel = "bench.example.com/managed-by"
	// RegionAnnotation is on each of them, too; its value is that of the key region in the ConfigMap Settings.
	RegionAnnotation = "bench.example.com/region"
	// Settings is the name of a ConfigMap that all Widgets of its namespace read.
	Settings = "settings"
)

// Widget is the upstream.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec has the data of the ConfigMap.
type Spec struct {
	Data map[string]string `json:"data,omitempty"`
}

// Status has the condition Ready.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Data = maps.Clone(w.Spec.Data)
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta, Items: make([]Widget, len(l.Items))}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return out
}

// AddToScheme adds Widget and WidgetList.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(GroupVersion.WithKind("Widget"), &Widget{})
	s.AddKnownTypeWithName(GroupVersion.WithKind("WidgetList"), &WidgetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Options are the flags of a program.
type Options struct {
	Kubeconfig, Namespace, Metrics, Pprof string
	// Lease is the name of a Lease to elect a leader with; "" for no election.
	Lease string
	// Resync is how often every Widget is reconciled without an event.
	Resync time.Duration
}

// ParseFlags reads the flags of the process.
func ParseFlags() Options {
	var o Options
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError) // controller-runtime adds -kubeconfig to the default one
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flags.StringVar(&o.Namespace, "namespace", "", "namespace of the Widgets")
	flags.StringVar(&o.Metrics, "metrics", "0", "address of the metrics endpoint")
	flags.StringVar(&o.Pprof, "pprof", "0", "address of the profiling endpoint")
	flags.StringVar(&o.Lease, "lease", "", "name of the Lease to elect a leader with")
	flags.DurationVar(&o.Resync, "resync", 10*time.Hour, "time between two resyncs")
	_ = flags.Parse(os.Args[1:]) // ends the process on an error
	return o
}

// Config is the client configuration, without a limit of requests.
func (o Options) Config() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	return cfg, nil
}
