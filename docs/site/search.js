// The index lies beside the pages, so searching asks nobody else.
const place = document.getElementById("search");
new PagefindUI({ element: place, showImages: false, bundlePath: new URL(`${place.dataset.up}pagefind/`, document.baseURI).pathname });
