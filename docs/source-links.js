// Links that leave the book lead to files of the repository, which are not part of the book.
"use strict";
const repository = "https://github.com/kvrm/kvrm/blob/main/";
for (const link of document.querySelectorAll("main a[href^='../']")) {
    link.href = repository + link.getAttribute("href").replace(/^(\.\.\/)+/, "").replace(/\.html\b/, ".md");
}
