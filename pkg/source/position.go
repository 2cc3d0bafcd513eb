package source

import (
	"fmt"
	"os"
)

// position says what a server had at a moment: the rows that were committed up to a place in its log.
type position struct {
	// system identifies the database: a restored copy has the same, another database does not.
	system string
	// timeline counts how often a standby became the primary.
	timeline int64
	// log is the place in the log.
	log uint64
	// standby: rows may exist elsewhere that the server has not seen.
	standby bool
	// file is the file that was read; nil if the database is not one.
	file os.FileInfo
}

// Doubt is why a result does not prove that the rows which it lacks are gone. The zero Doubt is none.
type Doubt struct {
	Why string
	// Lasting doubt stays until the rows are there again, or until it is confirmed that they are gone: no later result
	// knows more.
	Lasting bool
}

// judge compares the position of a result with the last one. An error means that the result is older than the last one.
func (p *position) judge(last *position) (Doubt, error) {
	switch {
	case p == nil:
		return Doubt{}, nil
	case last == nil:
	case p.system != last.system:
		return Doubt{Why: "another database answered than before, which may lack rows", Lasting: true}, nil
	case p.timeline < last.timeline:
		return Doubt{}, fmt.Errorf("the server that answered is behind: its timeline is %d, and %d was seen before",
			p.timeline, last.timeline)
	case p.timeline > last.timeline:
		return Doubt{Why: "a standby became the primary, which may not have seen all rows", Lasting: true}, nil
	case p.log < last.log:
		return Doubt{}, fmt.Errorf("the server that answered is behind: its log ends at %X, and %X was seen before; "+
			"if the database was restored, restart corollary", p.log, last.log)
	}
	if p.standby {
		return Doubt{Why: "a standby answered, which may not have seen all rows"}, nil
	}
	return Doubt{}, nil
}

// isNewFile reports whether another file is in the place of the last one. It counts, but past values of a cursor say
// nothing of it.
func (p *position) isNewFile(last *position) bool {
	return p != nil && last != nil && p.file != nil && !os.SameFile(p.file, last.file)
}
