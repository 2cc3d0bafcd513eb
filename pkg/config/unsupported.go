package config

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// notYet lists what the config schema has and this version does not do. It is refused, never ignored. To lift
// one, remove its row.
var notYet = []struct {
	path fieldpath.Path
	only any    // refused only with this value; nil: refused when given at all
	mend string // what to do meanwhile
}{
	{fieldpath.New("mode"), string(ModeObserve), "leave it out, or write mode: " + string(ModeEnforce)},
	{fieldpath.New("parameters"), nil, "write the values into the templates"},
	{fieldpath.New("inputs"), nil, "leave it out"},
	{fieldpath.New("conventionsFile"), nil, "write the conventions into this file"},
	{fieldpath.New("deletion", "wait"), true, "leave it out"},
	{fieldpath.New("deletion", "before"), nil, "leave it out"},
	{fieldpath.New("guard"), nil, "leave it out"},
}

// unsupported refuses what this version does not do.
func (f *File) unsupported() Errors {
	var errs Errors
	for _, n := range notYet {
		v, _ := fieldpath.Get(f.values, n.path)
		if v == nil || n.only != nil && v != n.only {
			continue
		}
		what := display(n.path)
		if n.only != nil {
			what += fmt.Sprintf(": %v", v)
		}
		errs = append(errs, f.Errorf(display(n.path), n.mend, "%s is not supported yet", what))
	}
	return errs
}
