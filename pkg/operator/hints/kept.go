package hints

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// generatedHints are about generated values that are deleted with their upstream while data that they may protect is
// kept. A config that sets the deletionPolicy has decided that.
func generatedHints(c compile.Compiled) (hints []config.Error) {
	named := keeper(c.Pipeline)
	if named == "" {
		return nil
	}
	for i, d := range c.Pipeline.Downstreams {
		if len(d.Config.Generated) > 0 && d.Config.DeletionPolicy == config.DeletionDelete && !c.File.GivesDeletionPolicy(i) {
			hints = append(hints, *c.File.Errorf(fmt.Sprintf("downstreams[%d].generated", i),
				"to keep the Secret, set deletionPolicy: Orphan, and adoptionPolicy: IfUnowned to take it over again; to "+
					"confirm that it goes, set deletionPolicy: Delete",
				"the values are lost when the upstream is deleted, and data of %s may be kept that needs them", named))
		}
	}
	return hints
}

// keeper names a downstream whose data may outlive it: of volumes, or whatever a controller of others keeps for an
// object of its own kind.
func keeper(p *compile.Pipeline) string {
	for _, d := range p.Downstreams {
		if gk := d.GVK().GroupKind(); decide.KeepsData(d.Downstream) {
			return fmt.Sprintf("%s (downstream %s)", gk.Kind, d.Name)
		}
	}
	return ""
}

// recordHints are about data that nothing finds again once it does not show in the watches.
func recordHints(c compile.Compiled) []config.Error {
	at, fix, lacks := "status.downstreams", "set it, such as status.downstreams: .status.downstreams",
		"nothing records which objects exist: if conventions and names change, they may be made anew or left behind"
	switch p := c.Pipeline; {
	case (!p.StatusEnabled() || p.HasRows()) && p.NameKey() == "":
		at, fix, lacks = "conventions",
			"name an annotation for it, such as conventions.downstreamName: {annotation: DOMAIN/downstream}",
			"nothing says of which downstream an object is: if one is renamed or removed from the config, its objects may "+
				"count as another one's"
	case !p.StatusEnabled(), p.HasRows(), p.Config.Status.Downstreams != "":
		return nil
	}
	for _, d := range c.Pipeline.Downstreams {
		what := ""
		switch gk := d.GVK().GroupKind(); {
		case d.OwnsFields():
		case len(d.Config.Generated) > 0:
			what = "has generated values"
		case d.Config.DeletionPolicy == config.DeletionOrphan:
			what = "has deletionPolicy: Orphan"
		case gk.Kind == "PersistentVolumeClaim", gk.Kind == "StatefulSet":
			what = "is a " + gk.Kind
		}
		if what != "" {
			return []config.Error{*c.File.Errorf(at, fix, "downstream %s %s, and %s", d.Name, what, lacks)}
		}
	}
	return nil
}
