package house

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"
)

// The limits of one package.
const (
	maxCircle   = 10   // files that all depend on each other
	maxLinks    = 5    // other files of the package that a file depends on, on average
	maxMethods  = 40   // methods of a type
	maxFields   = 20   // fields of a struct
	maxExported = 120  // exported identifiers
	maxPackage  = 3000 // lines
)

// notYet are the figures over their limits: each may only fall, and one that has come below its limit leaves the list.
var notYet = map[string]int{}

// Packages have rooms: no large circle of files, no type or struct that holds everything, no package that is many.
func TestStructure(t *testing.T) {
	rooms := map[string]*room{}
	for _, s := range product(t) {
		if !ast.IsGenerated(s.file) {
			r := rooms[s.dir]
			if r == nil {
				r = &room{declared: map[string][]*source{}, methods: map[string]int{}, fields: map[string]int{}}
				rooms[s.dir] = r
			}
			r.add(s)
		}
	}
	over := map[string]int{}
	for dir, r := range rooms {
		check := func(what string, figure, limit int) {
			if figure > limit {
				over[dir+": "+what] = figure
			}
		}
		links := r.links()
		check("circle", circle(links), maxCircle)
		total := 0
		for _, to := range links {
			total += len(to)
		}
		check("links", (total+len(links)-1)/len(links), maxLinks)
		for name, n := range r.methods {
			check("methods of "+name, n, maxMethods)
		}
		for name, n := range r.fields {
			check("fields of "+name, n, maxFields)
		}
		check("exported", r.exported, maxExported)
		check("lines", r.lines, maxPackage)
	}
	for _, what := range slices.Sorted(maps.Keys(over)) {
		if figure, allowed := over[what], notYet[what]; figure > allowed {
			t.Errorf("%s is %d: it is over its limit, and the list notYet allows %d; split the package, or make it smaller", what, figure, allowed)
		}
	}
	for what := range notYet {
		if over[what] == 0 {
			t.Errorf("%s is below its limit now: take it off the list notYet", what)
		}
	}
}

// room is one package.
type room struct {
	files    []*source
	declared map[string][]*source // by name, the files that declare it
	methods  map[string]int       // by type
	fields   map[string]int       // by struct
	exported int
	lines    int
}

// add adds a file.
func (r *room) add(s *source) {
	r.files, r.lines = append(r.files, s), r.lines+s.lines
	for _, declaration := range s.file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			r.declare(d.Name, s)
			if d.Recv != nil {
				r.methods[receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					r.declare(spec.Name, s)
					if of, ok := spec.Type.(*ast.StructType); ok {
						for _, field := range of.Fields.List {
							r.fields[spec.Name.Name] += max(1, len(field.Names))
						}
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						r.declare(name, s)
					}
				}
			}
		}
	}
}

func (r *room) declare(name *ast.Ident, s *source) {
	if !slices.Contains(r.declared[name.Name], s) {
		r.declared[name.Name] = append(r.declared[name.Name], s)
	}
	if name.IsExported() {
		r.exported++
	}
}

// links are, by file, the others that it names something of. A name that several files declare says nothing.
func (r *room) links() map[*source]map[*source]bool {
	links := map[*source]map[*source]bool{}
	for _, s := range r.files {
		links[s] = map[*source]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && len(r.declared[id.Name]) == 1 && r.declared[id.Name][0] != s {
				links[s][r.declared[id.Name][0]] = true
			}
			return true
		})
	}
	return links
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// circle is the size of the largest set of files that all lead to each other.
func circle(links map[*source]map[*source]bool) (largest int) {
	reached := map[*source]map[*source]bool{}
	for from := range links {
		seen := map[*source]bool{}
		var visit func(s *source)
		visit = func(s *source) {
			for to := range links[s] {
				if !seen[to] {
					seen[to] = true
					visit(to)
				}
			}
		}
		visit(from)
		reached[from] = seen
	}
	for from, seen := range reached {
		n := 1
		for to := range seen {
			if to != from && reached[to][from] {
				n++
			}
		}
		largest = max(largest, n)
	}
	return largest
}
