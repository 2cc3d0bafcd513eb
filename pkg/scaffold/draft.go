package scaffold

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// Options say what of the manifests differs from one custom resource to the next.
type Options struct {
	// Conventions are those that the config is to share. Their domain is settled.
	Conventions *Conventions
	// Holes are values that the custom resource gives, each as [DOWNSTREAM:]PATH=FIELD.
	Holes []string
	// Name is the text that is replaced by the custom resource's name in the manifests; empty: what their names begin
	// with.
	Name string
}

// Draft is everything that a first config needs, as text.
type Draft struct {
	// Definition is the definition to write; empty if the one that is there has all that is needed.
	Definition string
	// Operator is the config.
	Operator string
	// Conventions is the shared conventions file; empty if there is one.
	Conventions string
	// Sample is a custom resource from which the manifests follow.
	Sample string
	// Name is the sample's.
	Name string
	// Notes are what its reader should mind, a line each.
	Notes []string

	operator *operator
	holes    []*hole
	fields   *branch
	sample   map[string]any
}

// Draft makes templates of the manifests, and holds them to what they were made of. It works once: the manifests are
// used up. A *RequestError is about the options; other errors name the file and document.
func (m *Manifests) Draft(o Options) (*Draft, error) {
	for _, one := range m.list {
		one.dropMarks(o.Conventions)
	}
	u := m.upstream
	d := &Draft{
		Notes:    m.notes,
		operator: &operator{name: strings.ToLower(u.kind.Kind), upstream: u, manifests: m.list, shared: o.Conventions},
	}
	if err := d.dig(o.Holes); err != nil {
		return nil, err
	}
	d.generatePasswords()
	if d.Name = o.Name; d.Name == "" {
		d.Name = commonName(m.list)
	}
	d.makeSample()
	if err := d.makeTemplates(); err != nil {
		return nil, err
	}
	if len(d.holes) == 0 {
		d.note("nothing but the name differs from one %s to the next: make holes of the values that should differ, such "+
			"as %s",
			u.kind.Kind, suggest(m.list))
	}
	d.Notes = append(d.Notes, advise(m.list, u.kind.Kind)...)
	return d, d.write()
}

// dig finds the holes, those that were asked for and those that the upstream's fields let expect.
func (d *Draft) dig(texts []string) error {
	manifests := d.operator.manifests
	for _, text := range texts {
		h, err := findHole(manifests, text)
		if err != nil {
			return err
		}
		d.holes = append(d.holes, h)
	}
	matched, notes := d.operator.upstream.match(manifests, d.holes)
	d.holes, d.Notes = append(d.holes, matched...), append(d.Notes, notes...)
	if err := agree(d.holes); err != nil {
		return err
	}
	var err error
	d.fields, err = grow(d.holes)
	return err
}

func (d *Draft) makeSample() {
	u := d.operator.upstream
	spec := d.fields.sample().(map[string]any)
	if u.known != nil {
		if samples := sampleOf(schemaAt(u.known.Schema, fieldpath.New("spec")), spec, ".spec"); len(samples) > 0 {
			d.note("in the sample, %s are placeholders: the schema requires them", strings.Join(samples, ", "))
		}
	}
	apiVersion, kind := u.kind.ToAPIVersionAndKind()
	d.sample = map[string]any{"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": d.Name}, "spec": spec}
}

// makeTemplates puts expressions into the manifests.
func (d *Draft) makeTemplates() error {
	op := d.operator
	var texts []string
	for _, one := range op.manifests {
		text, err := yamltext.Write(one.root)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	m := newMarks(texts)
	for _, h := range d.holes {
		if err := h.fill(m.add(op.upstream.expression(h))); err != nil {
			return err
		}
	}
	bindNames(op.manifests, d.Name, m.add(".metadata.name"))
	for i, one := range op.manifests {
		var err error
		if texts[i], err = yamltext.Write(one.root); err != nil {
			return err
		}
	}
	op.around = choose(texts)
	for i, one := range op.manifests {
		text := m.template(texts[i], op.around)
		if err := one.givesBack(text, op.around, d.sample); err != nil {
			return err
		}
		op.templates = append(op.templates, text)
	}
	return nil
}

// write makes the texts.
func (d *Draft) write() error {
	var err error
	write := d.operator.upstream.definition
	switch u := d.operator.upstream; {
	case u.schemaText != "":
		write = u.describesAll
	case u.known != nil:
		write = u.complete
	}
	if d.Definition, err = write(d.fields); err != nil {
		return err
	}
	d.Operator = d.operator.text()
	if shared := d.operator.shared; !shared.Found {
		d.Conventions = shared.text()
	}
	d.Sample, err = yamltext.Of(d.sample)
	return err
}

// Describe says what became of what: the upstream, each downstream, and where values of the one go in the other.
func (d *Draft) Describe(w io.Writer) {
	apiVersion, kind := d.operator.upstream.kind.ToAPIVersionAndKind()
	fmt.Fprintf(w, "upstream: %s (%s)\n", kind, apiVersion)
	for _, one := range d.operator.manifests {
		apiVersion, kind := one.kind.ToAPIVersionAndKind()
		fmt.Fprintf(w, "downstream %s: %s (%s)\n", one.downstream, kind, apiVersion)
		for _, h := range d.holes {
			if h.source == one {
				fmt.Fprintf(w, "  %s is .spec.%s of the upstream\n", h.path, strings.Join(h.field, "."))
			}
		}
	}
}

func (d *Draft) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// givesBack holds a template to the manifest that it was made of: for the sample it has to give the same.
func (s *source) givesBack(template string, around [2]string, sample map[string]any) error {
	t, err := render.Compile(template, render.Options{Delimiters: parsing.Delimiters{Left: around[0], Right: around[1]}})
	var got map[string]any
	if err == nil {
		got, err = t.Execute(program.Data{Upstream: sample})
	}
	if err == nil && !equality.Semantic.DeepEqual(got, s.value) {
		err = fmt.Errorf("it gives another object than the manifest")
	}
	if err != nil {
		return fmt.Errorf("making a template of %s: %w", s.where, err)
	}
	return nil
}
