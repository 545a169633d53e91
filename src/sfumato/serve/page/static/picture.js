// The chart as a picture of dots: the drawing of the server, twice as large as it is.

async function picture(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function watchPictures(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-png]");
    if (!button) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await picture(button.dataset.png));
    link.download = button.dataset.name;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
