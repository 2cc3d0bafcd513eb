package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// NamedKind is a kind of the configs with the names that people call it by.
type NamedKind struct {
	kinds.Kind
	names []string // in lower case: kind, resource, singular and short names
}

func (k *NamedKind) String() string {
	if k.GVK.Group == "" {
		return k.GVK.Kind
	}
	return k.GVK.Kind + "." + k.GVK.Group
}

// Is reports whether an apiVersion and kind of a config are this one. The version does not count: an object has them
// all.
func (k *NamedKind) Is(apiVersion, kind string) bool {
	return k.GVK.GroupKind() == schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}

// IsRow reports whether it is the kind of the rows of a database.
func (k *NamedKind) IsRow() bool { return k.GVK == desired.RowKind().GVK }

// KindNames are the kinds of configs.
type KindNames struct {
	Served []*NamedKind
	// missing are those that the API server does not serve.
	missing []schema.GroupVersionKind
}

// DiscoverNames asks the API server what the kinds of configs are called.
func DiscoverNames(cfg *rest.Config, files []*load.File) (*KindNames, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	names := &KindNames{}
	served := map[string]*metav1.APIResourceList{}
	for _, f := range files {
		if f.Source != nil {
			names.addRows()
		}
		for _, gvk := range f.Kinds() {
			gv := gvk.GroupVersion().String()
			if served[gv] == nil {
				if served[gv], err = client.ServerResourcesForGroupVersion(gv); apierrors.IsNotFound(err) {
					served[gv] = &metav1.APIResourceList{}
				} else if err != nil {
					return nil, fmt.Errorf("asking the API server at %s for the kinds of %s: %w", cfg.Host, gv, err)
				}
			}
			names.add(gvk, served[gv])
		}
	}
	return names, nil
}

// addRows adds the kind of rows, which no API server has.
func (n *KindNames) addRows() {
	k := desired.RowKind()
	if !slices.ContainsFunc(n.Served, func(have *NamedKind) bool { return have.GVK == k.GVK }) {
		n.Served = append(n.Served, &NamedKind{Kind: *k, names: []string{strings.ToLower(k.GVK.Kind), k.GVR.Resource}})
	}
}

func (n *KindNames) add(gvk schema.GroupVersionKind, served *metav1.APIResourceList) {
	if slices.ContainsFunc(n.Served, func(k *NamedKind) bool { return k.GVK.GroupKind() == gvk.GroupKind() }) ||
		slices.Contains(n.missing, gvk) {
		return
	}
	for _, r := range served.APIResources {
		if r.Kind != gvk.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		k := &NamedKind{Kind: kinds.Kind{GVK: gvk, GVR: gvk.GroupVersion().WithResource(r.Name), Namespaced: r.Namespaced}}
		for _, name := range append([]string{r.Kind, r.Name, r.SingularName}, r.ShortNames...) {
			if name != "" {
				k.names = append(k.names, strings.ToLower(name))
			}
		}
		n.Served = append(n.Served, k)
		return
	}
	n.missing = append(n.missing, gvk)
}

// find returns the kind of a name: deployment, deployments, deploy, Deployment, deployment.apps, deployments.v1.apps.
func (n *KindNames) find(name string) (*NamedKind, error) {
	word, rest, qualified := strings.Cut(strings.ToLower(name), ".")
	var found []*NamedKind
	for _, k := range n.Served {
		group := k.GVK.Group
		fits := !qualified || rest == group || rest == strings.TrimSuffix(k.GVK.Version+"."+group, ".")
		if fits && slices.Contains(k.names, word) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		for _, gvk := range n.missing {
			if kind := strings.ToLower(gvk.Kind); word == kind || word == kind+"s" || word == kind+"es" {
				return nil, fmt.Errorf("%s %s is not served by the API server: install its CustomResourceDefinition",
					gvk.GroupVersion(), gvk.Kind)
			}
		}
		return nil, fmt.Errorf("no config has a kind %q; the kinds are %s", name, n)
	}
	return nil, fmt.Errorf("kind %q is several: write %s", name, strings.Join(kindTexts(found), " or "))
}

// Kinds are those that the API server serves.
func (n *KindNames) Kinds() []kinds.Kind {
	list := make([]kinds.Kind, len(n.Served))
	for i, k := range n.Served {
		list[i] = k.Kind
	}
	return list
}

// String lists the kinds that can be asked about.
func (n *KindNames) String() string {
	list := kindTexts(n.Served)
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func kindTexts(named []*NamedKind) []string {
	list := make([]string, len(named))
	for i, k := range named {
		list[i] = k.String()
	}
	return list
}

// Target finds the kind that a person wrote and says where the object of that name is: in the connection's namespace,
// where the kind has any.
func (n *KindNames) Target(c *Connection, kind, name string) (*NamedKind, apply.Target, error) {
	k, err := n.find(kind)
	if err != nil {
		return nil, apply.Target{}, err
	}
	t := apply.Target{GVR: k.GVR, Name: name}
	if k.Namespaced {
		t.Namespace, err = c.Namespace()
	}
	return k, t, err
}

// KindAndName takes KIND NAME or KIND/NAME.
func KindAndName(_ *cobra.Command, args []string) error {
	_, _, err := SplitKindName(args)
	return err
}

// SplitKindName reads the arguments KIND NAME, or KIND/NAME.
func SplitKindName(args []string) (kind, name string, err error) {
	if len(args) == 1 {
		if kind, name, ok := strings.Cut(args[0], "/"); ok && kind != "" && name != "" {
			return kind, name, nil
		}
	}
	if len(args) != 2 {
		return "", "", Usagef("KIND and NAME are needed: deployment web, or deployment/web")
	}
	return args[0], args[1], nil
}
