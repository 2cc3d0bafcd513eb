package cli

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
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// namedKind is a kind of the configs with the names that people call it by.
type namedKind struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
	names      []string // in lower case: kind, resource, singular and short names
}

func (k *namedKind) String() string {
	if k.gvk.Group == "" {
		return k.gvk.Kind
	}
	return k.gvk.Kind + "." + k.gvk.Group
}

// is reports whether an apiVersion and kind of a config are this one. The version does not count: an object has them all.
func (k *namedKind) is(apiVersion, kind string) bool {
	return k.gvk.GroupKind() == schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}

// isRow reports whether it is the kind of the rows of a database.
func (k *namedKind) isRow() bool { return k.gvk == pipeline.RowKind().GVK }

// kindNames are the kinds of configs.
type kindNames struct {
	served []*namedKind
	// missing are those that the API server does not serve.
	missing []schema.GroupVersionKind
}

// discoverNames asks the API server what the kinds of configs are called.
func discoverNames(cfg *rest.Config, files []*config.File) (*kindNames, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	names := &kindNames{}
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
func (n *kindNames) addRows() {
	k := pipeline.RowKind()
	if !slices.ContainsFunc(n.served, func(have *namedKind) bool { return have.gvk == k.GVK }) {
		n.served = append(n.served, &namedKind{gvk: k.GVK, gvr: k.GVR, names: []string{strings.ToLower(k.GVK.Kind), k.GVR.Resource}})
	}
}

func (n *kindNames) add(gvk schema.GroupVersionKind, served *metav1.APIResourceList) {
	if slices.ContainsFunc(n.served, func(k *namedKind) bool { return k.gvk.GroupKind() == gvk.GroupKind() }) ||
		slices.Contains(n.missing, gvk) {
		return
	}
	for _, r := range served.APIResources {
		if r.Kind != gvk.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		k := &namedKind{gvk: gvk, gvr: gvk.GroupVersion().WithResource(r.Name), namespaced: r.Namespaced}
		for _, name := range append([]string{r.Kind, r.Name, r.SingularName}, r.ShortNames...) {
			if name != "" {
				k.names = append(k.names, strings.ToLower(name))
			}
		}
		n.served = append(n.served, k)
		return
	}
	n.missing = append(n.missing, gvk)
}

// find returns the kind of a name: deployment, deployments, deploy, Deployment, deployment.apps, deployments.v1.apps.
func (n *kindNames) find(name string) (*namedKind, error) {
	word, rest, qualified := strings.Cut(strings.ToLower(name), ".")
	var found []*namedKind
	for _, k := range n.served {
		group := k.gvk.Group
		fits := !qualified || rest == group || rest == strings.TrimSuffix(k.gvk.Version+"."+group, ".")
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
				return nil, fmt.Errorf("%s %s is not served by the API server: install its CustomResourceDefinition", gvk.GroupVersion(), gvk.Kind)
			}
		}
		return nil, fmt.Errorf("no config has a kind %q; the kinds are %s", name, n)
	}
	return nil, fmt.Errorf("kind %q is several: write %s", name, strings.Join(kindTexts(found), " or "))
}

// String lists the kinds that can be asked about.
func (n *kindNames) String() string {
	list := kindTexts(n.served)
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func kindTexts(kinds []*namedKind) []string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.String()
	}
	return list
}

// target finds the kind that a person wrote and says where the object of that name is: in the connection's namespace,
// where the kind has any.
func (n *kindNames) target(c *connection, kind, name string) (*namedKind, apply.Target, error) {
	k, err := n.find(kind)
	if err != nil {
		return nil, apply.Target{}, err
	}
	t := apply.Target{GVR: k.gvr, Name: name}
	if k.namespaced {
		t.Namespace, err = c.namespace()
	}
	return k, t, err
}

// kindAndName takes KIND NAME or KIND/NAME.
func kindAndName(_ *cobra.Command, args []string) error {
	_, _, err := splitKindName(args)
	return err
}

func splitKindName(args []string) (kind, name string, err error) {
	if len(args) == 1 {
		if kind, name, ok := strings.Cut(args[0], "/"); ok && kind != "" && name != "" {
			return kind, name, nil
		}
	}
	if len(args) != 2 {
		return "", "", usagef("KIND and NAME are needed: deployment web, or deployment/web")
	}
	return args[0], args[1], nil
}
