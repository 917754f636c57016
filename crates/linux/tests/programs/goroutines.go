// Goroutines, channels, a mutex, maps, sorting, printing, recovered panics and garbage.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

type span struct{ from, to int }

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// primes counts them in spans that workers take from a channel.
func primes(limit, workers int) int {
	spans := make(chan span)
	counts := make(chan int)
	for i := 0; i < workers; i++ {
		go func() {
			count := 0
			for s := range spans {
				for n := s.from; n < s.to; n++ {
					if isPrime(n) {
						count++
					}
				}
			}
			counts <- count
		}()
	}
	for from := 0; from < limit; from += 1000 {
		spans <- span{from, from + 1000}
	}
	close(spans)
	total := 0
	for i := 0; i < workers; i++ {
		total += <-counts
	}
	return total
}

// words counts them, with one goroutine for each line.
func words(lines []string) map[string]int {
	var lock sync.Mutex
	var group sync.WaitGroup
	counts := make(map[string]int)
	for _, line := range lines {
		group.Add(1)
		go func(line string) {
			defer group.Done()
			for _, word := range strings.Fields(line) {
				lock.Lock()
				counts[word]++
				lock.Unlock()
			}
		}(line)
	}
	group.Wait()
	return counts
}

// chain passes a number through many goroutines, each of which adds one.
func chain(length int) int {
	first := make(chan int)
	in := first
	for i := 0; i < length; i++ {
		out := make(chan int)
		go func(in, out chan int) { out <- <-in + 1 }(in, out)
		in = out
	}
	first <- 0
	return <-in
}

func divide(a, b int) (result string) {
	defer func() {
		if problem := recover(); problem != nil {
			result = fmt.Sprint("recovered: ", problem)
		}
	}()
	return fmt.Sprint(a / b)
}

func nilPointer() (result string) {
	defer func() { result = fmt.Sprint("recovered: ", recover()) }()
	var s *span
	return fmt.Sprint(s.to)
}

// garbage makes much of it, so that the collector runs.
func garbage() int {
	kept := make([][]byte, 64)
	for i := 0; i < 20000; i++ {
		kept[i%len(kept)] = make([]byte, 4096)
		kept[i%len(kept)][i%4096] = byte(i)
	}
	sum := 0
	for _, block := range kept {
		for _, b := range block {
			sum += int(b)
		}
	}
	return sum
}

func main() {
	fmt.Println("arguments", os.Args[1:])
	fmt.Println("primes", primes(20000, 4))
	counts := words([]string{"the cat sat", "on the mat", "the end", "a cat on a mat"})
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		if counts[names[i]] != counts[names[j]] {
			return counts[names[i]] > counts[names[j]]
		}
		return names[i] < names[j]
	})
	for _, name := range names {
		fmt.Printf("%-4s %d\n", name, counts[name])
	}
	fmt.Println("chain", chain(1000))
	fmt.Println(divide(7, 2), divide(7, 0))
	fmt.Println(nilPointer())
	fmt.Println("garbage", garbage())
	select {
	case <-time.After(20 * time.Millisecond):
		fmt.Println("timeout")
	case <-make(chan int):
		fmt.Println("never")
	}
	fmt.Printf("%v %+v %T %q %x %8.3f|%-8s|%t\n", span{1, 2}, span{3, 4}, span{}, "a\tb", "kvrm", 3.14159, "left", true)
	fmt.Fprintln(os.Stderr, "to standard error")
	os.Exit(7)
}
