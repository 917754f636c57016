// Links that leave the book lead to files of the repository. They work where the book was built, in target/book of the
// repository; elsewhere they become text, because no address of a repository is known here.
"use strict";
for (const link of document.querySelectorAll("main a[href^='../']")) {
    const path = link.getAttribute("href").replace(/^\.\.\//, "").replace(/\.html\b/, ".md");
    if (location.protocol === "file:") {
        link.href = "../../" + path;
    } else {
        const name = document.createElement("span");
        name.title = path + " in the repository";
        name.append(...link.childNodes);
        link.replaceWith(name);
    }
}
