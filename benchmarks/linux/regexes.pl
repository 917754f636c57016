# Regular expressions over a text: captures, alternatives, look-ahead, substitutions.
use strict;
use warnings;

open my $file, "<", "corpus" or die "corpus: $!";
my $text = "";
while (my $line = <$file>) {
    $text .= $line;
    last if $. == 15000;
}
my (%names, %words);
my ($calls, $numbers, $strings) = (0, 0, 0);
$names{$1}++ while $text =~ /\b(?:def|class)\s+([A-Za-z_]\w*)/g;
$calls++ while $text =~ /\b\w+(?:\.\w+)*\s*\((?=[^()]*\))/g;
$numbers++ while $text =~ /(?<![\w.])(?:0x[0-9a-f]+|\d+(?:\.\d*)?(?:e[-+]?\d+)?)\b/gi;
$strings++ while $text =~ /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;
(my $swapped = $text) =~ s/(\w+)\s*=\s*(\w+)/$2 = $1/g;
my $letters = ($swapped =~ tr/a-z//);
print scalar(keys %names), " names, $calls calls, $numbers numbers, $strings strings, $letters letters\n";
my @longest = sort { length $b <=> length $a || $a cmp $b } keys %names;
print "$_ $names{$_}\n" for @longest[0 .. 4];
$words{lc $_}++ for grep { /^[a-z]{4,}$/i } split /[^A-Za-z]+/, $text;
my @often = sort { $words{$b} <=> $words{$a} || $a cmp $b } keys %words;
print join(" ", map { "$_=$words{$_}" } @often[0 .. 9]), "\n";
