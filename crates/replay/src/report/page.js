
(function () {
  var sound = document.getElementById("sound");
  var call = document.getElementById("call");
  var head = document.getElementById("head");
  var scroll = document.querySelector(".scroll");
  var end = Number(document.querySelector(".board").dataset.end) / 1000;
  if (!sound || !call) return;
  document.body.classList.add("playable");
  function show() {
    var width = call.viewBox.baseVal.width;
    var x = sound.currentTime / end * width;
    head.setAttribute("x1", x);
    head.setAttribute("x2", x);
    var seen = x - scroll.scrollLeft;
    if (!sound.paused && (seen < 0 || seen > scroll.clientWidth * 0.9)) scroll.scrollLeft = x - 60;
  }
  call.addEventListener("click", function (event) {
    var box = call.getBoundingClientRect();
    sound.currentTime = (event.clientX - box.left) / box.width * end;
    show();
    sound.play();
  });
  sound.addEventListener("timeupdate", show);
})();
