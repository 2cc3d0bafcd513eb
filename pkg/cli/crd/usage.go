package crd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pages"
)

type usageOptions struct {
	streams    command.IO
	connection command.Connection
	output     command.Output
}

func newUsage(streams command.IO) *cobra.Command {
	o := &usageOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "usage CRD",
		Short: "Show which versions of a custom kind objects were written in, and by whom",
		Long: `Count the objects of a custom kind by the versions that their managedFields name:

  LAST     objects whose newest write was in this version
  OBJECTS  objects on which a field manager has fields that it wrote in this version

and list these field managers. A version that no object names, and in which none is
stored, can be removed; corollary migrate rewrites what still names it.

Clients that only read do not appear. For them, see the API server's metric
apiserver_requested_deprecated_apis, once the version is deprecated.

Only metadata is read, 500 objects at a time. Nothing is written.`,
		Example: `  corollary crd usage crontabs.example.com

  # Who still writes v1beta1
  corollary crd usage crontabs.example.com -o json | jq -r '.managers[] | select(.version == "v1beta1") | .manager'`,
		Args: command.OneDefinition,
		RunE: command.RunUntilSignal(o.run),
	}
	o.output.Bind(cmd, "Output format: text, or json (documented in docs/cli.md)", command.Text, command.JSON)
	o.connection.Bind(cmd, "")
	return cmd
}

// usageOfCRD is what the objects of a kind tell of its versions.
type usageOfCRD struct {
	CRD      string           `json:"crd"`
	Objects  int              `json:"objects"`
	Versions []*versionUsage  `json:"versions"`
	Managers []*managerOnKind `json:"managers"`
	// Unknown is how many objects name no version of the kind in managedFields.
	Unknown int `json:"unknown"`
}

// versionUsage is what they tell of one.
type versionUsage struct {
	Version string `json:"version"`
	// Defined reports whether the definition has the version; the others are of it.
	Defined    bool `json:"defined"`
	Served     bool `json:"served"`
	Storage    bool `json:"storage"`
	Stored     bool `json:"stored"` // status.storedVersions names it: objects may be stored in it
	Deprecated bool `json:"deprecated"`
	Last       int  `json:"last"`
	Objects    int  `json:"objects"`
}

// managerOnKind is a field manager that wrote objects in one version.
type managerOnKind struct {
	Version   string      `json:"version"`
	Manager   string      `json:"manager"`
	Operation string      `json:"operation"`
	Objects   int         `json:"objects"`
	Last      metav1.Time `json:"last"`
	// Example is the object that it wrote last, NAMESPACE/NAME.
	Example string `json:"example"`
}

func (o *usageOptions) run(ctx context.Context, args []string) error {
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	cfg.WarningHandler = rest.NoWarnings{} // that a version is deprecated is what is shown
	definitions, err := command.DynamicFor(cfg)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	crd, err := kinds.ReadDefinition(ctx, definitions, args[0])
	if err != nil {
		return err
	}
	u, err := usageOf(ctx, objects, crd)
	if err != nil {
		return err
	}
	return o.output.Print(o.streams.Out, u, u.print)
}

// usageOf goes through the objects in the version that is stored, or another one if that is not served: it needs no conversion.
func usageOf(ctx context.Context, client metadata.Interface, crd *apiextensionsv1.CustomResourceDefinition) (*usageOfCRD, error) {
	u := &usageOfCRD{CRD: crd.Name, Managers: []*managerOnKind{}}
	read := ""
	for _, v := range crd.Spec.Versions {
		u.Versions = append(u.Versions, &versionUsage{Version: v.Name, Defined: true, Served: v.Served, Storage: v.Storage,
			Stored: slices.Contains(crd.Status.StoredVersions, v.Name), Deprecated: v.Deprecated})
		if v.Served && (v.Storage || read == "") {
			read = v.Name
		}
	}
	if read == "" {
		return nil, fmt.Errorf("%s serves no version: set served: true in one of them", crd.Name)
	}
	objects := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: read, Resource: crd.Spec.Names.Plural})
	managers := map[[3]string]*managerOnKind{}
	err := pages.Each(ctx, metav1.ListOptions{Limit: 500}, objects.List, func(page *metav1.PartialObjectMetadataList) error {
		for i := range page.Items {
			u.add(&page.Items[i], crd.Spec.Group, managers)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the objects of %s: %w", crd.Name, err)
	}
	u.Managers = slices.AppendSeq(u.Managers, maps.Values(managers))
	slices.SortFunc(u.Managers, func(a, b *managerOnKind) int {
		return cmp.Or(
			cmp.Compare(u.index(a.Version), u.index(b.Version)),
			cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.Operation, b.Operation),
		)
	})
	return u, nil
}

// add counts one object.
func (u *usageOfCRD) add(o *metav1.PartialObjectMetadata, group string, managers map[[3]string]*managerOnKind) {
	u.Objects++
	last := struct {
		version string
		at      time.Time
	}{}
	seen := map[any]bool{}
	for _, entry := range o.ManagedFields {
		gv, err := schema.ParseGroupVersion(entry.APIVersion)
		if err != nil || gv.Group != group {
			continue
		}
		at := metav1.Time{}
		if entry.Time != nil {
			at = *entry.Time
		}
		if last.version == "" || !at.Time.Before(last.at) {
			last.version, last.at = gv.Version, at.Time
		}
		if !seen[gv.Version] {
			u.Versions[u.index(gv.Version)].Objects++
		}
		key := [3]string{gv.Version, entry.Manager, string(entry.Operation)}
		m := managers[key]
		if m == nil {
			m = &managerOnKind{Version: gv.Version, Manager: entry.Manager, Operation: string(entry.Operation)}
			managers[key] = m
		}
		if !seen[key] {
			m.Objects++
		}
		if m.Example == "" || m.Last.Before(&at) {
			m.Last, m.Example = at, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
		}
		seen[gv.Version], seen[key] = true, true
	}
	if last.version == "" {
		u.Unknown++
		return
	}
	u.Versions[u.index(last.version)].Last++
}

// index is where a version is. One that the definition lacks comes after the others.
func (u *usageOfCRD) index(version string) int {
	i := slices.IndexFunc(u.Versions, func(v *versionUsage) bool { return v.Version == version })
	if i < 0 {
		u.Versions = append(u.Versions, &versionUsage{Version: version})
		return len(u.Versions) - 1
	}
	return i
}

func (v *versionUsage) state() string {
	if !v.Defined {
		return "not defined"
	}
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{v.Storage, "storage"}, {v.Stored && !v.Storage, "stored"}, {v.Served, "served"},
		{!v.Served, "not served"}, {v.Deprecated, "deprecated"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

func (u *usageOfCRD) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "VERSION\tSTATE\tLAST\tOBJECTS")
	for _, v := range u.Versions {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", v.Version, v.state(), v.Last, v.Objects)
	}
	if u.Unknown > 0 {
		fmt.Fprintf(w, "(unknown)\t\t%d\t%d\n", u.Unknown, u.Unknown)
	}
	if len(u.Managers) > 0 {
		fmt.Fprintln(w, "\nVERSION\tMANAGER\tOPERATION\tOBJECTS\tTIME\tEXAMPLE")
	}
	for _, m := range u.Managers {
		at := ""
		if !m.Last.IsZero() {
			at = m.Last.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", m.Version, command.EscapeControl(m.Manager), m.Operation, m.Objects, at, m.Example)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the usage: %w", err)
	}
	return nil
}
