// Links that leave the book name files of the repository, which are not part of the book: the path is shown instead.
"use strict";
for (const link of document.querySelectorAll("main a[href^='../']")) {
    const text = document.createElement("span");
    text.title = link.getAttribute("href").replace(/^(\.\.\/)+/, "").replace(/\.html\b/, ".md");
    text.append(...link.childNodes);
    link.replaceWith(text);
}
