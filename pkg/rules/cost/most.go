package cost

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// PerCall limits the cost of one evaluation, in units of CEL, as the API server does: about a tenth of a second.
const PerCall = celconfig.PerCallLimit

// self is the variable whose sizes its schema bounds.
const self = "self"

// MaxStored is the size of the largest object that etcd stores by default, in bytes of JSON. It bounds what the schema
// does not.
const MaxStored = 3 << 19

// Bound is a place in self whose size the schema does not bound, with the keyword that would, and the size that was
// assumed.
type Bound struct {
	Path, Keyword string
	Assumed       uint64
}

// Most returns the largest cost of a checked expression for any self of at most size bytes that its schema allows, and
// what the schema leaves without a bound, sorted by path.
func Most(env *cel.Env, checked *cel.Ast, root *schema.Node, size uint64) (cost uint64, unbounded []Bound) {
	s := &sizes{root: root, limit: size, open: map[string]Bound{}}
	s.SizeEstimator = s
	estimate, err := env.EstimateCost(checked, s)
	if err != nil {
		return math.MaxUint64, nil
	}
	for _, path := range slices.Sorted(maps.Keys(s.open)) {
		unbounded = append(unbounded, s.open[path])
	}
	return estimate.Max, unbounded
}

// MaxEntries is how many items or keys a list or map of a schema can have in an object of size bytes, and whether the
// schema bounds it.
func MaxEntries(s *spec.Schema, size uint64) (most uint64, isBounded bool) {
	return maxSizeOf(schema.New(s, false), size)
}

// sizes estimates sizes at the bounds of the schema, and costs with the prices of guard.
type sizes struct {
	library.CostEstimator
	root  *schema.Node
	limit uint64           // of everything in bytes
	open  map[string]Bound // by path
}

// EstimateSize implements checker.CostEstimator.
func (s *sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if sized := s.known(element.Path()); sized != nil {
		return sized
	}
	if len(element.Path()) > 0 && element.Path()[0] == self || element.Type().Kind() == types.TypeKind {
		return &checker.SizeEstimate{Max: s.limit}
	}
	switch element.Type().Kind() {
	case types.StringKind, types.BytesKind, types.ListKind, types.MapKind, types.DynKind:
		if element.Expr() != nil && element.Expr().Kind() != ast.CallKind && element.Expr().Kind() != ast.IdentKind {
			return nil
		}
		return &checker.SizeEstimate{Max: s.limit}
	}
	return nil
}

// known is the size at a path of self; nil for anything else.
func (s *sizes) known(path []string) *checker.SizeEstimate {
	if len(path) == 0 || path[0] != self {
		return nil
	}
	if path[len(path)-1] == "@keys" || path[len(path)-1] == "@indices" {
		return &checker.SizeEstimate{Max: s.limit}
	}
	at := s.nodeAt(path)
	if at == nil || at.IsXIntOrString() {
		return s.unbounded(path, "a type in the schema", s.limit)
	}
	size, isBounded := maxSizeOf(at, s.limit)
	switch {
	case isBounded:
		return &checker.SizeEstimate{Max: size}
	case at.Item != nil:
		return s.unbounded(path, "maxItems", size)
	case at.Values != nil:
		return s.unbounded(path, "maxProperties", size)
	}
	return s.unbounded(path, "maxLength", size)
}

func (s *sizes) unbounded(path []string, keyword string, size uint64) *checker.SizeEstimate {
	text := strings.NewReplacer(".@items", "[]", ".@values", "{}").Replace("." + strings.Join(path[1:], "."))
	assumed := size
	if keyword == "maxLength" {
		assumed /= utf8.UTFMax
	}
	s.open[text] = Bound{text, keyword, assumed}
	return &checker.SizeEstimate{Max: size}
}

// maxSizeOf is the size that CEL counts of a value in limit bytes: bytes of a text, entries of a list or a map, 1 of a
// scalar.
func maxSizeOf(n *schema.Node, limit uint64) (size uint64, isBounded bool) {
	size = limit
	atMost := func(bound *int64, times uint64) {
		if bound != nil && *bound >= 0 && uint64(*bound) < math.MaxUint64/times {
			size, isBounded = min(size, uint64(*bound)*times), true
		}
	}
	switch {
	case n.Item != nil:
		size = limit / (1 + minBytes(n.Item))
		atMost(n.MaxItems(), 1)
	case n.Values != nil:
		size = limit / (4 + minBytes(n.Values))
		atMost(n.MaxProperties(), 1)
	case n.Fields != nil:
		return uint64(len(n.Fields)), true
	case n.Type() == "string":
		atMost(n.MaxLength(), utf8.UTFMax)
		if enum := n.Enum(); len(enum) > 0 {
			longest := int64(0)
			for _, value := range enum {
				text, _ := value.(string)
				longest = max(longest, int64(len(text)))
			}
			atMost(&longest, 1)
		}
		if longest := int64(patternMax(n.Pattern(), nil)); longest >= 0 && longest < most {
			atMost(&longest, 1)
		}
	default:
		return 1, true
	}
	return max(1, size), isBounded
}

// minBytes is the size of the smallest value of a schema as JSON.
func minBytes(n *schema.Node) uint64 {
	switch {
	case n.Fields != nil:
		size := uint64(2)
		for _, name := range n.Required() {
			if property := n.Fields[name]; property != nil {
				size += uint64(len(name)) + 4 + minBytes(property)
			}
		}
		return size
	case n.Item != nil || n.Values != nil || n.Type() == "string":
		return 2
	}
	return 1
}

// EstimateCallCost implements checker.CostEstimator.
func (s *sizes) EstimateCallCost(
	function, overload string, target *checker.AstNode, args []checker.AstNode,
) *checker.CallEstimate {
	estimate := s.CostEstimator.EstimateCallCost(function, overload, target, args)
	if _, ok := prices[function]; !ok {
		return estimate
	}
	if target != nil {
		args = append([]checker.AstNode{*target}, args...)
	}
	made, size := s.price(function, args)
	switch {
	case estimate == nil:
		estimate = &checker.CallEstimate{}
	case function == "join": // its estimate multiplies what an object can have only once
		estimate.Max = 0
	}
	estimate.CostEstimate = checker.CostEstimate{Max: max(made, estimate.Max)}
	if size != nil {
		estimate.ResultSize = size
	}
	return estimate
}

// sizeOf is how large an argument can be.
func (s *sizes) sizeOf(args []checker.AstNode, i int) uint64 {
	if i >= len(args) {
		return 0
	}
	size := args[i].ComputedSize()
	if size == nil {
		size = s.EstimateSize(args[i])
	}
	if size == nil {
		return s.limit
	}
	return size.Max
}

// literal is the value of an argument that is one; nil for others.
func literal(args []checker.AstNode, i int) ref.Val {
	if i >= len(args) || args[i].Expr() == nil || args[i].Expr().Kind() != ast.LiteralKind {
		return nil
	}
	return args[i].Expr().AsLiteral()
}

func literalText(args []checker.AstNode, i int) (string, bool) {
	text, ok := literal(args, i).(types.String)
	return string(text), ok
}

// Plus adds costs; it does not overflow.
func Plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Times multiplies costs; it does not overflow.
func Times(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

// price is the largest price of a call, as prices computes it of values, and the size of the result where CEL does not
// know it.
func (s *sizes) price(function string, args []checker.AstNode) (cost uint64, size *checker.SizeEstimate) {
	n := s.sizeOf(args, 0)
	tenth := n/10 + 1
	switch function {
	case "strings.quote":
		return tenth, nil
	case "quantity", "isQuantity", "distinct":
		return Plus(tenth, Times(n, n)/100), nil
	case "sets.contains", "sets.intersects", "sets.equivalent":
		return Times(2, Times(n, s.sizeOf(args, 1))/10+1), nil
	case "sort", "@sortByAssociatedKeys":
		return Times(n, uint64(1+bits.Len64(n)))/4 + 1, nil
	case "indexOf", "lastIndexOf":
		return Plus(n/4+1, Times(n, s.sizeOf(args, 1))/500), nil
	case "matches", "find", "findAll":
		return s.regexPrice(function, args)
	case "replace":
		return s.replacePrice(args)
	case "split":
		count := s.separators(args)
		return Plus(tenth, Times(6, count)), &checker.SizeEstimate{Max: Plus(count, 1)}
	case "join":
		return s.joinPrice(args)
	case "format":
		return s.formatPrice(args)
	case "lists.range":
		return listRangePrice(args)
	case "flatten":
		return Plus(n, s.limit), &checker.SizeEstimate{Max: Plus(n, s.limit)}
	}
	return n/4 + 1, nil // reverse, slice and the like
}

func (s *sizes) joinPrice(args []checker.AstNode) (uint64, *checker.SizeEstimate) {
	n, total := s.sizeOf(args, 0), s.limit // all of them are in the object
	if path := args[0].Path(); len(path) == 0 || path[0] != self {
		total = Times(n, s.limit) // each may be as long
	}
	separators := Times(n, s.sizeOf(args, 1))
	return Plus(total, Plus(Times(16, n), separators))/10 + 1, &checker.SizeEstimate{Max: Plus(total, separators)}
}

func listRangePrice(args []checker.AstNode) (uint64, *checker.SizeEstimate) {
	count, ok := literal(args, 0).(types.Int)
	if !ok {
		return math.MaxUint64, &checker.SizeEstimate{Max: math.MaxUint64}
	}
	n := uint64(max(0, count))
	return n/4 + 1, &checker.SizeEstimate{Max: n}
}

func (s *sizes) regexPrice(function string, args []checker.AstNode) (uint64, *checker.SizeEstimate) {
	n := s.sizeOf(args, 0)
	pattern, ok := literalText(args, 1)
	if !ok {
		return math.MaxUint64, nil
	}
	cost := Plus(uint64(len(pattern))*2, Times(Plus(n, 100), uint64(programSize(pattern)))/50)
	if function == "findAll" {
		cost = Plus(cost, Times(4, n))
	}
	return cost, nil
}

func (s *sizes) replacePrice(args []checker.AstNode) (uint64, *checker.SizeEstimate) {
	n, count := s.sizeOf(args, 0), s.separators(args)
	size := Plus(n, Times(Plus(count, 1), s.sizeOf(args, 2)))
	return size/10 + 1, &checker.SizeEstimate{Max: size}
}

// separators is how often the second argument can be in the first.
func (s *sizes) separators(args []checker.AstNode) uint64 {
	n := s.sizeOf(args, 0)
	separator, ok := literalText(args, 1)
	if !ok || separator == "" {
		return Plus(n, 1)
	}
	count := n / uint64(len(separator))
	if at := s.nodeAt(args[0].Path()); at != nil && at.Type() == "string" {
		first, _ := utf8.DecodeRuneInString(separator)
		count = min(count, patternMax(at.Pattern(), &first))
	}
	return count
}

// nodeAt is the schema at a path of self; nil where there is none.
func (s *sizes) nodeAt(path []string) *schema.Node {
	if len(path) == 0 || path[0] != self {
		return nil
	}
	at := s.root
	for _, step := range path[1:] {
		switch {
		case at == nil || at.Dyn:
			return nil
		case step == "@items":
			at = at.Item
		case at.Values != nil:
			at = at.Values
		default:
			name, _ := schema.Unescape(step)
			at = at.Fields[name]
		}
	}
	if at == nil || at.Dyn {
		return nil
	}
	return at
}

func (s *sizes) formatPrice(args []checker.AstNode) (uint64, *checker.SizeEstimate) {
	format, ok := literalText(args, 0)
	if !ok {
		return math.MaxUint64, nil
	}
	digits := uint64(formatPrice([]ref.Val{types.String(format), types.DefaultTypeAdapter.NativeToValue([]any{})}))
	size := Plus(Times(uint64(strings.Count(format, "%")), s.limit), Times(10, digits+1))
	return size/10 + digits + 1, &checker.SizeEstimate{Max: size}
}
