package main

import (
	"fmt"
	str "strings"
	. "os"
	"github.com/go-chi/chi/v5"
)

// Max is the limit. Really.
const Max = 10

const (
	A = iota
	B
)

var x, y = 1, 2

// Server serves.
type Server struct {
	*http.Server
	Base
	name string
}
type Doer interface {
	Do() error
	io.Reader
}
type ID = string

func (s *Server[T]) Run(a int) error {
	fmt.Println(s.name)
	go s.do()
	return nil
}
func New() *Server { return str.Map(func() { x() }) }
